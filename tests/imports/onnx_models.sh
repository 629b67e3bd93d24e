#!/bin/bash
# ONNX files as models of the program: what trainer export writes comes back with the same weights and
# figures, and goes on training under every strategy; what is wrong with a file is one line. imports/onnx has
# the graphs, imports/onnx_clients those of other programs.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1
small="--dataset=digits:take=128 --batch=16 --quiet"

if grep -q TRAINER_PROTOBUF=0 "$BUILD/flags"; then
    : >net.onnx
    refused 2 'net.onnx: reading it needs a build with protobuf-c' train --model=onnx:file=net.onnx
    exit $failures
fi

# shellcheck disable=SC2086
{
    good $small --epochs=2 --out=first --average=0.9 \
        --model='layers:stem = conv 4 3x3 same no_bias; norm = batch_norm relu; conv 4 3x3 gelu; '\
'maxpool 2; flatten; dense 12 tanh; dense'
    good export --checkpoint=first net.onnx
    good import net.onnx --dataset=digits:take=128 --out=imported
    for run in first imported; do
        good evaluate --checkpoint=$run
        cp out $run.figures
        good export --checkpoint=$run $run.npz
    done
    cmp first.figures imported.figures || fail "$(cat first.figures imported.figures)"
    cmp first.npz imported.npz || fail "other weights"

    strategies=$("$TRAINER" list strategies | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
    [ "$(wc -w <<<"$strategies")" -gt 5 ] || fail "strategies: $strategies"
    for strategy in $strategies; do
        good $small --epochs=1 --devices=cpu:0,cpu:1 --strategy="$strategy" --model=onnx:file=net.onnx \
            --optimizer=sgd:rate=0.01 --out="$strategy"
    done
    for weights in same fresh; do
        good $small --epochs=1 --model=onnx:file=net.onnx,weights=$weights --optimizer=sgd:rate=0.000000001 \
            --out=$weights
        good evaluate --checkpoint=$weights
        cp out $weights.figures
    done
    cmp -s same.figures fresh.figures && fail "weights=fresh: found those of the file"
}

head -c 5000 net.onnx >cut.onnx
refused 3 'cut.onnx: found no ONNX model, or one that is cut short' describe --model=onnx:file=cut.onnx
refused 3 'none.onnx: No such file' describe --model=onnx:file=none.onnx
refused 2 'onnx: found no file, expected onnx:file=FILE' describe --model=onnx
refused 2 'net.txt: expected a name that ends with .onnx' describe --model=onnx:file=net.txt
refused 2 'onnx: found the file net.h5, which keras:file=net.h5 reads' describe --model=onnx:file=net.h5
refused 2 'the network takes examples of \[64\], the data set has \[4\]' describe --model=onnx:file=net.onnx \
    --dataset=iris
[ $failures -eq 0 ]
