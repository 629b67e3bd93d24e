# Sourced by the scripts that ask Keras and onnxruntime themselves; it is no test. Sets $python, or skips the test.
# shellcheck shell=bash
# shellcheck disable=SC2154 # setup.sh goes before

# In an environment of their own in the build folder, made once, by the first of them. Keras computes with NumPy, but reads files with
# JAX's help.
environment=$BUILD/python-clients
python=$environment/bin/python
exec 9>"$BUILD/python-clients.lock"
flock 9
if ! "$python" -c 'import keras, onnxruntime' 2>/dev/null; then
    { python3 -m venv "$environment" && timeout 200 "$python" -m pip install -q --retries 0 --timeout 10 keras==3.15.0 onnxruntime==1.32.0 \
        onnx==1.23.2 scipy==1.17.1 jax==0.10.2 h5py==3.14.0; } >log 2>&1
fi
exec 9>&-
export KERAS_BACKEND=numpy
if ! "$python" -c 'import keras, onnx, onnxruntime' 2>/dev/null; then
    echo "Keras and onnxruntime are not here and cannot be installed"
    exit 77
fi
