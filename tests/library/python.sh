#!/bin/bash
# The Python module over the library: trains, iterates steps, predicts, runs graphs; arrays go in and out
# where they are.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
! nm "$BUILD/library/libtrainer.so" 2>/dev/null | grep -Eq '__(asan|tsan|ubsan)_' ||
    { echo "built with a sanitizer: Python is not"; exit 77; }

# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
python_with numpy "NumPy is"

TRAINER_LIBRARY=$BUILD/library/libtrainer.so PYTHONPATH=$root/python "$python" "$tests/library_python.py" \
    >out 2>&1 || fail "$(cat out)"

# --- as pip installs it, from what is there: no package is fetched ---
"$python" -c 'import sys, setuptools, pip; sys.exit(int(setuptools.__version__.split(".")[0]) < 71)' \
    2>/dev/null || "$python" -c 'import setuptools, pip, wheel' 2>/dev/null || {
    [ $failures -eq 0 ] || exit 1
    echo "no pip with a setuptools that makes wheels is here"
    exit 77
}
cp -r "$root/python" source
mkdir elsewhere
if "$python" -m pip install --quiet --no-build-isolation --no-index --no-deps --disable-pip-version-check \
    --target=site ./source >out 2>&1; then
    (
        cd elsewhere && TRAINER_LIBRARY=$BUILD/library/libtrainer.so PYTHONPATH=$scratch/site "$python" \
            "$tests/library_python.py" short
    ) >out 2>&1 ||
        fail "installed: $(cat out)"
    found=$(TRAINER_LIBRARY=$BUILD/library/libtrainer.so PYTHONPATH=$scratch/site "$python" -c \
        'import trainer; print(trainer.__file__, trainer.version)')
    [ "$found" = "$scratch/site/trainer/__init__.py $("$TRAINER" --version | awk '{ print $2; exit }')" ] ||
        fail "installed: $found"
else
    fail "pip install: $(cat out)"
fi

[ $failures -eq 0 ]
