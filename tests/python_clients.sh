# Sourced by the scripts that ask programs of other people, which are Python packages; it is no test.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2086,SC2154 # $python is for them; setup.sh, or $BUILD, goes before

# Sets $python to one that imports the modules, or skips the test. All packages are in one environment in the
# build folder; where that cannot be, what is installed serves. Keras computes with NumPy, but reads files
# with JAX's help. Whether a module is there is asked without loading it: Keras takes seconds.
export KERAS_BACKEND=numpy
has_modules() { # python, modules
    "$1" -c 'import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, sys.argv[1:])))' \
        ${2//,/} 2>/dev/null
}
python_with() { # modules, what they are
    "$(dirname "${BASH_SOURCE[0]}")/python-clients" "$BUILD"
    python=$BUILD/python-clients/bin/python
    has_modules "$python" "$1" && return
    python=python3
    has_modules "$python" "$1" && return
    echo "$2 not here and cannot be installed"
    exit 77
}
