#!/bin/bash
# Losses and metrics of whole runs. Regression reaches the error of the normal equations, in the units of the
# values, whoever tells it: lines, files, evaluate, predict, report, bench; the best epoch is the one with the
# lowest error. Several labels, and label smoothing. Each goes on from a checkpoint bit for bit, under other
# strategies and over processes.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

weights() { python3 read.py weights "$1/model.safetensors"; }
summary() { python3 read.py summary "$1/summary.json" "$2"; }
near() { # what, found, expected, tolerance
    python3 -c "import sys; sys.exit(not abs($2 - $3) <= $4)" || fail "$1: found $2, expected $3"
}

cat >read.py <<'PYTHON'
import hashlib, json, struct, sys
what, path, *names = sys.argv[1:]
if what == "weights":
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    print(hashlib.sha256(data[8 + length:]).hexdigest())
if what == "summary":
    print(*[json.load(open(path)).get(name) for name in names])
# What an exported linear network says of an example, brought to mean 0 and deviation 1 as its own notes
# have it.
if what == "says":
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    array = lambda name: struct.unpack(
        f"<{(header[name]['data_offsets'][1] - header[name]['data_offsets'][0]) // 4}f",
        data[8 + length + header[name]["data_offsets"][0]:8 + length + header[name]["data_offsets"][1]])
    notes = header["__metadata__"]
    mean, deviation = ([float(v) for v in notes[name].split(",")] for name in ("mean", "deviation"))
    kernel, bias = array("dense1/kernel"), array("dense1/bias")
    print(bias[0] +
          sum((float(v) - m) / d * k for v, m, d, k in zip(names[0].split(","), mean, deviation, kernel)))
PYTHON

# --- a law with noise; by its normal equations, the least error on the training part, and what it says on the
# test part ---
cat >make.py <<'PYTHON'
import random, struct
from npz_files import npy, npz
r = random.Random(5)
n, tests, features = 240, 60, 3
x = [[r.uniform(-3, 3) for _ in range(features)] for _ in range(n + tests)]
y = [[1000 + 40 * a - 25 * b + 10 * c + r.gauss(0, 5), -0.002 * a + 0.001 * c + r.gauss(0, 0.0005)]
     for a, b, c in x]
labels = [[int(a > 0), int(b + c > 1), int(a > 1 and b < 0.5), 1] for a, b, c in x]
def parts(name, values, dtype, width):
    npz(name, x_train=npy((n, features), sum(x[:n], []), "<f4"),
        x_test=npy((tests, features), sum(x[n:], []), "<f4"),
        y_train=npy((n,) + width, sum(values[:n], []), dtype),
        y_test=npy((tests,) + width, sum(values[n:], []), dtype))
parts("one.npz", [v[:1] for v in y], "<f8", ())
parts("two.npz", y, "<f4", (2,))
parts("labels.npz", labels, "|u1", (4,))
# Other units; the test part is that of one.npz.
parts("moved.npz", [[3 * v[0] - 700] for v in y[:n]] + [v[:1] for v in y[n:]], "<f8", ())
single = lambda v: struct.unpack("<f", struct.pack("<f", v))[0] # as an array has it
# The first target stands between the features.
for name, first, end in ("train", 0, n), ("test", n, n + tests):
    open(name + ".csv", "w").write("a,u,b,c,v\n" + "".join(
        f"{single(p)!r},{single(u)!r},{single(q)!r},{single(s)!r},{single(v)!r}\n"
        for (p, q, s), (u, v) in zip(x[first:end], y[first:end])))
open("towns.csv", "w").write("town;price;rooms\n" + "".join(
    f"{'ABC'[i % 3]};{'NA' if i % 50 == 7 else 100 * (i % 3) + 10 * (i % 7)};{i % 7}\n" for i in range(210)))
open("rows.csv", "w").write("".join(",".join(map(str, row)) + "\n" for row in x[n:n + 2]))

def solve(output):
    rows = [[1.0] + row for row in x[:n]]
    k = features + 1
    a = [[sum(row[i] * row[j] for row in rows) for j in range(k)] +
         [sum(row[i] * v[output] for row, v in zip(rows, y))] for i in range(k)]
    for i in range(k):
        a[i] = [v / a[i][i] for v in a[i]]
        for j in range(k):
            if j != i:
                a[j] = [p - a[j][i] * q for p, q in zip(a[j], a[i])]
    return [row[-1] for row in a]
def said(law, row):
    return law[0] + sum(w * v for w, v in zip(law[1:], row))
law = solve(0)
missed = [said(law, row) - v[0] for row, v in zip(x[n:], y[n:])]
mean = sum(v[0] for v in y[n:]) / tests
print((sum(e * e for e in missed) / tests) ** 0.5, sum(map(abs, missed)) / tests,
      1 - sum(e * e for e in missed) / sum((v[0] - mean) ** 2 for v in y[n:]), said(law, x[n]),
      said(law, x[n + 1]))
PYTHON
read -r rmse mae r2 first second <<<"$(python3 make.py)"
linear="--model=softmax --optimizer=sgd:rate=0.1 --schedule=constant --batch=24 --devices=cpu:0,cpu:1 \
    --threads=1 --quiet"

# --- regression: the law, in its units ---
good --dataset=npz:file=one.npz $linear --epochs=60 --validation=0.2 --outputs=csv,report,prometheus --out=one
grep -q '^Test-RMSE: ' out || fail "a run on values says $(cat out)"
good --dataset=npz:file=one.npz $linear --batch=120 --epochs=60 --out=whole
near 'RMSE of all examples together' "$(summary whole test_rmse)" "$rmse" 1e-3
near MAE "$(summary whole test_mae)" "$mae" 1e-3
near R2 "$(summary whole test_r2)" "$r2" 1e-5
[ "$(summary whole metric) $(summary whole test_accuracy)" = "rmse None" ] ||
    fail "summary.json has an accuracy of values"
grep -q "^Test-RMSE: $(python3 -c "print('%.6g' % $(summary whole test_rmse))")\$" out ||
    fail "the last lines are $(cat out)"
good predict --checkpoint=whole rows.csv
near 'the first prediction' "$(sed -n '1s/^Prediction is //p' out)" "$first" 1e-2
near 'the second prediction' "$(sed -n '2s/^Prediction is //p' out)" "$second" 1e-2
good export --checkpoint=whole whole-units.safetensors
"$TRAINER" export --checkpoint=whole whole.npz >out 2>err
grep -qF 'whole.npz takes (x - mean) / deviation of each feature' err || fail "export said: $(cat err)"
near 'what an exported network says' \
    "$(python3 read.py says whole-units.safetensors "$(head -n 1 rows.csv)")" "$first" 1e-2
if "$TRAINER" export --checkpoint=whole whole.onnx >out 2>err; then # a build with protobuf-c
    good import whole.onnx --dataset=npz:file=one.npz --out=imported
    good evaluate --checkpoint=imported
    near 'RMSE of a network that came back' "$(sed -n 's/^Test-RMSE: //p' out)" "$rmse" 1e-2
fi

# --- the network, exported or not, on data in other units: it says the same ---
good predict --checkpoint=whole-units.safetensors rows.csv
near 'a prediction of an exported network' "$(sed -n '2s/^Prediction is //p' out)" "$second" 1e-2
good evaluate --checkpoint=whole-units.safetensors --dataset=npz:file=one.npz
near 'RMSE of an exported network' "$(sed -n 's/^Test-RMSE: //p' out)" "$rmse" 1e-2
for file in whole whole-units.safetensors; do
    runs evaluate --checkpoint=$file --dataset=npz:file=moved.npz
    near "RMSE of $file in other units" "$(sed -n 's/^Test-RMSE: //p' out)" "$rmse" 1e-2
    for set in one moved; do # which hardly moves them
        good --dataset=npz:file=$set.npz $linear --optimizer=sgd:rate=1e-9 --epochs=1 --weights=$file \
            --out=again --replace
        near "RMSE of $set.npz with the weights of $file" "$(summary again test_rmse)" "$rmse" 1e-2
    done
done
good evaluate --checkpoint=whole
[ "$(sed 's/: .*//' out | tr '\n' ' ')" = "Examples Test-RMSE Test-MAE Test-R2 Test-Cost " ] ||
    fail "evaluate says $(cat out)"
near 'RMSE by evaluate' "$(sed -n 's/^Test-RMSE: //p' out)" "$rmse" 1e-2
near 'the cost, of values with deviation 1' "$(sed -n 's/^Test-Cost: //p' out)" \
    "$(tail -n 1 whole/epochs.csv | cut -d, -f4)" 1e-4

# --- the best epoch has the lowest error of the validation part ---
head -n 1 one/epochs.csv | grep -q ',test_rmse,.*,validation_rmse$' ||
    fail "epochs.csv begins with $(head -n 1 one/epochs.csv)"
best=$(tail -n +2 one/epochs.csv | sort -t, -k8,8g -k7,7g -s | head -n 1 | cut -d, -f1)
[ "$(summary one best_epoch)" = "$best" ] ||
    fail "epoch $(summary one best_epoch) is the best, expected $best"
grep -q '^trainer_test_rmse ' one/metrics.prom || fail "metrics.prom has no test_rmse"
grep -q 'test RMSE<' one/report.html || fail "report.html has no RMSE"
! grep -Eq 'ccuracy|confuse' one/report.html ||
    fail "report.html speaks of what there is not: $(grep -Eo '.{30}(ccuracy|confuse).{30}' one/report.html)"
good report one --replace
good report one whole --out=both.html

# --- it goes on bit for bit; other strategies and losses learn it, too ---
good --dataset=npz:file=one.npz $linear --epochs=60 --loss=mae --out=mae
good --dataset=npz:file=one.npz $linear --epochs=25 --loss=mae --out=half
good --resume=half --epochs=60 --devices=cpu:0,cpu:1 --threads=1 --quiet
[ "$(weights half)" = "$(weights mae)" ] || fail "a resumed run has other weights"
near 'RMSE with the absolute error' "$(summary mae test_rmse)" "$rmse" 1
for strategy in async-apply async-lockfree:apply=worker ssp local-sgd; do
    good --dataset=npz:file=two.npz $linear --strategy=$strategy --optimizer=sgd:rate=0.02 --epochs=60 \
        --out="$strategy"
    near "R2 of two values under $strategy" "$(summary "$strategy" test_r2)" 0.9 0.1
done
good predict --checkpoint=ssp rows.csv
grep -Eq '^Prediction is "0" [0-9.]+, "1" -?[0-9.e-]+$' out || fail "of two values predict says $(cat out)"

# --- tables: the same bits as of arrays; targets between categories and what is missing ---
good --dataset=csv:file=train.csv,test_file=test.csv,target=u,v $linear --epochs=5 --out=table
good --dataset=npz:file=two.npz $linear --epochs=5 --out=arrays
[ "$(weights table)" = "$(weights arrays)" ] || fail "a table learns other values than arrays"
[ "$(summary table test_rmse)" = "$(summary arrays test_rmse)" ] ||
    fail "a table is tested otherwise than arrays"
good predict --checkpoint=table test.csv
grep -Eq '^Prediction is "u" [0-9.]+, "v" -?[0-9.e-]+$' out ||
    fail "of two targets predict says $(head -n 1 out)"
judged() { sed -n "s/.*\b$1: \([-0-9.e]*\).*/\1/p" out; }
rows=$(($(wc -l <test.csv) - 1))
tail -n 1 out | grep -Eq "^RMSE: [0-9.]+, MAE: [0-9.]+, R2: -?[0-9.]+ \\($rows rows\\)\$" ||
    fail "predict of $rows rows with their values ends with $(tail -n 1 out)"
for figure in RMSE MAE R2; do
    near "$figure of predict" "$(judged $figure)" "$(summary table "test_$(tr '[:upper:]' '[:lower:]' <<<$figure)")" \
        1e-5
done
sed '3s/[^,]*$/NA/' test.csv >missing.csv
good predict --checkpoint=table missing.csv
tail -n 1 out | grep -q "($((rows - 1)) rows)\$" || fail "a row without a value: $(tail -n 1 out)"
"$TRAINER" predict --checkpoint=table --format=csv test.csv >out 2>err || fail "predict: $(cat err)"
grep -q '^trainer: RMSE: ' err || fail "predict to CSV: said $(cat err)"
grep -q 'prediction=u,prediction=v$' out || fail "a table of predictions begins with $(head -n 1 out)"
refused 3 'towns.csv: row 9, column 2 "price": found "NA", a missing value' \
    --dataset=csv:file=towns.csv,target=price
"$TRAINER" --dataset=csv:file=towns.csv,target=price,missing=drop $linear --epochs=200 --out=towns \
    >out 2>err || fail "towns: $(cat err)"
near 'R2 of a law without noise' "$(summary towns test_r2)" 1 1e-4
printf 'town;rooms\nB;3\n' >town.csv
good predict --checkpoint=towns town.csv
near 'a price' "$(sed -n 's/^Prediction is //p' out)" 130 1
refused 3 'towns.csv: row 2, column 1 "town": found "A", expected a number, as the column is a target$' \
    --dataset=csv:file=towns.csv,target=town
refused 2 'csv: found label= and target=, expected one of them$' \
    --dataset=csv:file=towns.csv,target=price,label=town
refused 2 'towns.csv: found target=cost, expected the name or number of one of its 3 columns' \
    --dataset=csv:file=towns.csv,target=cost

# --- several labels; the fourth, which all have, has no area under the curve ---
good --dataset=npz:file=labels.npz $linear --optimizer=sgd:rate=1 --epochs=60 --out=labels
grep -q '^Test-Accuracy: ' out || fail "a run on labels says $(cat out)"
near 'accuracy of labels' "$(summary labels test_accuracy)" 1 0.1
near 'the area under the curve' "$(summary labels test_auc)" 1 0.02
good predict --checkpoint=labels rows.csv
grep -Eq '^Prediction is "3" \([0-9.]+%\)' out || fail "of labels predict says $(cat out)"
good predict --checkpoint=labels --top=4 rows.csv
grep -Eq '^Prediction is "3"(.*%\)){4}$' out ||
    fail "of the four most probable labels predict says $(cat out)"
good evaluate --checkpoint=labels
grep -q '^Test-AUC: ' out || fail "evaluate of labels says $(cat out)"
# A sigmoid at the end is the loss's own: the same run without it.
printf '{"class_name": "Sequential", "config": {"name": "n", "layers": '\
'[{"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [null, 3]}}, %s]}}' \
    '{"class_name": "Dense", "config": {"name": "d", "units": 4, "activation": "sigmoid"}}' >labels.json
for model in keras:file=labels.json layers:dense 'layers:dense sigmoid'; do
    good --dataset=npz:file=labels.npz --model="$model" --optimizer=sgd:rate=1 --epochs=5 --batch=24 \
        --devices=cpu:0 --threads=1 --quiet --out=ends --replace
    figures="$(weights ends) $(summary ends test_cost test_auc)"
    [ "$figures" = "${ending:=$figures}" ] || fail "$model: found $figures, expected $ending"
done

# --- label smoothing: in training only; a network that was smoothed is tested as any other ---
digits="--dataset=digits:take=320 --model=mlp:hidden=20 --devices=cpu:0 --threads=1 --quiet"
good $digits --epochs=4 --label-smoothing=0.2 --out=smooth
good $digits --epochs=2 --label-smoothing=0.2 --out=smooth-half
good --resume=smooth-half --epochs=4 --devices=cpu:0 --threads=1 --quiet
[ "$(weights smooth)" = "$(weights smooth-half)" ] || fail "a resumed run smooths otherwise"
good $digits --epochs=4 --out=sharp
[ "$(weights smooth)" != "$(weights sharp)" ] || fail "--label-smoothing changes nothing"
good evaluate --checkpoint=smooth
near 'the cost by evaluate' "$(sed -n 's/^Test-Cost: //p' out)" "$(summary smooth test_cost)" 1e-4
near 'top-5' "$(sed -n 's/^Test-Top-5: //p' out)" "$(summary smooth test_top5)" 1e-4

# --- a parameter server and two workers, and two mirrored processes: the bits of one process, and its last
# lines ---
rounds="--dataset=npz:file=two.npz --model=softmax --optimizer=sgd:rate=0.1 --schedule=constant --batch=24 \
    --epochs=4 --quiet"
good $rounds --devices=cpu:0,cpu:1 --threads=1 --out=alone
new_cluster 1 2
start ps "$TRAINER" --job=ps --task=0 $hosts $rounds --out=served
for w in 0 1; do start_worker $w $rounds; done
ends 0 ps w0 w1
[ "$(weights served)" = "$(weights alone)" ] || fail "a cluster learns other values than one process"
for name in ps w0 w1; do
    [ "$(grep '^Test-' $name.out)" = \
        "Test-RMSE: $(python3 -c "print('%.6g' % $(summary served test_rmse))")" ] ||
        fail "$name: printed $(cat $name.out)"
done
new_cluster 0 2
for w in 0 1; do start_worker $w ${rounds/two/labels} --out=mirrored; done
ends 0 w0 w1
grep -q '^Test-Accuracy: ' w1.out || fail "a mirrored process printed $(cat w1.out)"

# --- refused ---
refused 2 '--loss=cross-entropy: npz:file=one.npz has numbers to predict, expected mse or mae$' \
    --dataset=npz:file=one.npz --loss=cross-entropy
refused 2 '--loss=mse: npz:file=labels.npz has several labels per example, expected binary-cross-entropy$' \
    --dataset=npz:file=labels.npz --loss=mse
refused 2 '--label-smoothing=0.1: found --loss=mse, expected cross-entropy$' \
    --dataset=npz:file=one.npz --label-smoothing=0.1
refused 2 '--target-accuracy=0.5: npz:file=one.npz has numbers to predict, expected classes or labels' \
    --dataset=npz:file=one.npz --target-accuracy=0.5
refused 2 'npz: examples \[3\] in 4 labels, expected \[3\] in 1 value, what the network was trained on$' \
    evaluate --checkpoint=one --dataset=npz:file=labels.npz
refused 2 'one: predicts no classes' show --inline --checkpoint=one
exit $((failures > 0))
