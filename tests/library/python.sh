#!/bin/bash
# The Python module over the library: trains, iterates steps, predicts, runs graphs; arrays go in and out where they are.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
! nm "$BUILD/library/libtrainer.so" 2>/dev/null | grep -Eq '__(asan|tsan|ubsan)_' || { echo "built with a sanitizer: Python is not"; exit 77; }

# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
python_with numpy "NumPy is"

TRAINER_LIBRARY=$BUILD/library/libtrainer.so PYTHONPATH=$root/python "$python" "$tests/library_python.py" >out 2>&1 || fail "$(cat out)"

[ $failures -eq 0 ]
