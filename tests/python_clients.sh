# Sourced by the scripts that ask programs of other people, which are Python packages; it is no test.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # $python is for them; setup.sh, or $BUILD, goes before

# Sets $python to one that imports the modules, or skips the test. All packages are in one environment in the build folder, which the
# first script that needs it makes; where that cannot be, what is installed serves. Keras computes with NumPy, but reads files with
# JAX's help.
export KERAS_BACKEND=numpy
python_with() { # modules, what they are
    local environment=$BUILD/python-clients
    python=$environment/bin/python
    exec 9>"$BUILD/python-clients.lock"
    flock 9
    if [ ! -e "$environment/made" ]; then
        python3 -m venv "$environment" >"$environment.log" 2>&1 &&
            timeout 250 "$python" -m pip install -q --retries 0 --timeout 10 keras==3.15.0 onnxruntime==1.32.0 \
                onnx==1.23.2 numpy==2.4.6 scipy==1.17.1 jax==0.10.2 h5py==3.14.0 safetensors==0.8.0 tensorboard==2.21.0 >>"$environment.log" 2>&1 &&
            : >"$environment/made"
    fi
    exec 9>&-
    "$python" -c "import $1" 2>/dev/null && return
    python=python3
    "$python" -c "import $1" 2>/dev/null && return
    echo "$2 not here and cannot be installed"
    exit 77
}
