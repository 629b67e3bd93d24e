# Sourced by the scripts that ask programs of other people, which are Python packages; it is no test.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # $python is for them; setup.sh, or $BUILD, goes before

# Sets $python to one that imports the modules, or skips the test. All packages are in one environment in the
# build folder; where that cannot be, what is installed serves. Keras computes with NumPy, but reads files
# with JAX's help.
export KERAS_BACKEND=numpy
python_with() { # modules, what they are
    "$(dirname "${BASH_SOURCE[0]}")/python-clients" "$BUILD"
    python=$BUILD/python-clients/bin/python
    "$python" -c "import $1" 2>/dev/null && return
    python=python3
    "$python" -c "import $1" 2>/dev/null && return
    echo "$2 not here and cannot be installed"
    exit 77
}
