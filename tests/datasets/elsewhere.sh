#!/bin/bash
# Data sets that somebody else made, as scikit-learn ships them as files: wine and breast cancer to tell
# apart, diabetes to predict, all as CSV, and two photographs, cut into tiles, as a folder of pictures.
# Trained by the program and by scikit-learn on the same rows, a linear network says what scikit-learn's own
# says. With TELL=1 the figures are printed (docs/measurements/accuracy.md).
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1
# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
python_with "sklearn, PIL" "scikit-learn is"

# --- the files, as they are but for their first line, which is no header; a quarter of the rows to test ---
cat >make.py <<'PYTHON'
import csv, gzip, os, random
import sklearn
from PIL import Image
folder = os.path.join(os.path.dirname(sklearn.__file__), "datasets")
random.seed(1)

def write(name, header, rows):
    random.shuffle(rows)
    for part, chosen in ("test", rows[:len(rows) // 4]), ("train", rows[len(rows) // 4:]):
        with open(f"{name}-{part}.csv", "w", newline="") as file:
            csv.writer(file).writerows(([header] if header else []) + chosen)
for name in "wine", "breast_cancer":
    with open(f"{folder}/data/{name}{'_data' if name == 'wine' else ''}.csv", newline="") as file:
        write(name, None, list(csv.reader(file))[1:])
with gzip.open(f"{folder}/data/diabetes_data_raw.csv.gz",
               "rt") as data, gzip.open(f"{folder}/data/diabetes_target.csv.gz", "rt") as target:
    names = "age sex bmi bp s1 s2 s3 s4 s5 s6 progression".split()
    write("diabetes", names,
          [line.split() + [value.strip()] for line, value in zip(data, target, strict=True)])
for name in "china", "flower":
    os.makedirs(f"tiles/{name}")
    photograph = Image.open(f"{folder}/images/{name}.jpg")
    for i, (x, y) in enumerate((x, y) for x in range(0, photograph.width - 31, 32)
                               for y in range(0, photograph.height - 31, 32)):
        photograph.crop((x, y, x + 32, y + 32)).save(f"tiles/{name}/{i:04}.jpg", quality=95)
PYTHON
"$python" make.py >out 2>&1 || fail "the files are not made: $(tail -n 1 out)"

train() { # run, data set, model, options...
    local run=$1 dataset=$2 model=$3
    shift 3
    runs --dataset="$dataset" --model="$model" --devices=cpu:0 --quiet --out="$run" "$@"
    [ $code -eq 0 ] || fail "$run: $(cat err)"
}
predict() { # run, file; standard error has the accuracy
    runs predict --checkpoint="$1" --format=csv "$2"
    [ $code -eq 0 ] || fail "$1: $(cat err)"
    cp out "$1.predicted"
}
for name in wine breast_cancer; do
    train $name csv:file=$name-train.csv,test_file=$name-test.csv softmax --optimizer=sgd:rate=0.5 \
        --decay=0.01 --schedule=constant --batch=32 --epochs=300
    train $name-mlp csv:file=$name-train.csv,test_file=$name-test.csv mlp:hidden=32 \
        --optimizer=adam:rate=0.005 --epochs=40
    predict $name $name-test.csv
done
train diabetes csv:file=diabetes-train.csv,test_file=diabetes-test.csv,target=progression layers:dense \
    --optimizer=momentum:rate=0.02 --schedule=cosine --batch=64 --epochs=500
predict diabetes diabetes-test.csv
train tiles pictures:dir=tiles,size=32x32 cnn --epochs=6

cat >check.py <<'PYTHON'
import csv, json, os
import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

def read(path, header=False):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[header:]
    return np.array([row[:-1] for row in rows], float), np.array([float(row[-1]) for row in rows])

def figure(run, name):
    with open(f"{run}/summary.json") as file:
        return json.load(file)[name]

# That of --decay=0.01; of two classes scikit-learn has one row of weights, the difference of ours.
def penalty(y):
    return (200 if len(set(y)) == 2 else 100) / len(y)

def tell(*words):
    if os.environ.get("TELL"):
        print("|", " | ".join(str(w) for w in words), "|")
for name, least in ("wine", 0.95), ("breast_cancer", 0.93):
    (x, y), (x_test, y_test) = read(f"{name}-train.csv"), read(f"{name}-test.csv")
    theirs = make_pipeline(StandardScaler(), LogisticRegression(C=penalty(y), max_iter=1000)).fit(x, y)
    net = make_pipeline(StandardScaler(), MLPClassifier((32,), "logistic", learning_rate_init=0.005,
                                                        batch_size=32, max_iter=40, random_state=1))
    wanted = theirs.predict_proba(x_test)
    with open(f"{name}.predicted", newline="") as file:
        said = list(csv.DictReader(file))
    ours = np.array([[float(row[f"probability={c}"]) for c in range(wanted.shape[1])] for row in said])
    same = (ours.argmax(1) == wanted.argmax(1)).mean()
    accuracy = (ours.argmax(1) == y_test).mean()
    assert accuracy >= least and figure(f"{name}-mlp", "test_accuracy") >= least, (
        name, accuracy, figure(f"{name}-mlp", "test_accuracy"))
    assert same >= 0.97, f"{name}: {same} of the predictions are scikit-learn's"
    tell(name, len(y), len(y_test), f"{accuracy:.4f}", f"{theirs.score(x_test, y_test):.4f}", f"{same:.4f}",
         f"{figure(f'{name}-mlp', 'test_accuracy'):.4f}", f"{net.fit(x, y).score(x_test, y_test):.4f}",
         f"{abs(ours - wanted).max():.4f}")
(x, y), (x_test, y_test) = read("diabetes-train.csv", True), read("diabetes-test.csv", True)
theirs = make_pipeline(StandardScaler(), LinearRegression()).fit(x, y)
with open("diabetes.predicted", newline="") as file:
    ours = np.array([float(row["prediction"]) for row in csv.DictReader(file)])
wanted = theirs.predict(x_test)
rmse = lambda p: np.sqrt(((p - y_test) ** 2).mean())
assert abs(ours - wanted).max() < 1, f"diabetes: {abs(ours - wanted).max()} else than scikit-learn's"
tell("diabetes", len(y), len(y_test), f"{rmse(ours):.2f}", f"{rmse(wanted):.2f}",
     f"{abs(ours - wanted).max():.2f}", f"R2 {theirs.score(x_test, y_test):.3f}")
assert figure("tiles", "test_accuracy") >= 0.9, figure("tiles", "test_accuracy")
tell("tiles", f"{figure('tiles', 'test_accuracy'):.4f}")
PYTHON
"$python" check.py >out 2>err || fail "$(tail -n 1 err)"
cat out
[ $failures -eq 0 ]
