#!/bin/bash
# A table of one's own, from training to predictions: columns of texts, missing cells, separators; predict
# finds the columns by name, judges where there are labels, reads standard input, and writes CSV that reads
# back as what it was.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

ran() { # exit code, arguments...; standard output in out, standard error in err
    local want=$1 code
    shift
    "$TRAINER" "$@" >out 2>err
    code=$?
    [ $code -eq "$want" ] || fail "trainer $*: exit code $code, expected $want: $(cat err)"
}
says() { grep -qxF -e "$1" "$2" || fail "expected '$1', found: $(cat "$2")"; }

python3 - <<'PYTHON'
import random
random.seed(1)
rows = []
for i in range(200):
    city, age = (random.choice(["Wien", "Graz", 'Sankt "X", oben', ""]),
                 random.choice(["", "", f"{random.uniform(1, 80):.1f}"] +
                               [f"{random.uniform(1, 80):.1f}"] * 5))
    rows.append((i, age, city, "1.2.2024", "yes" if city in ("Wien", "") else "no"))
quoted = lambda t: '"' + t.replace('"', '""') + '"' if '"' in t or "," in t or ";" in t else t
def write(path, names, rows, separator, comma):
    with open(path, "w") as file:
        for row in ([names] if names else []) + rows:
            file.write(separator.join(quoted(str(c).replace(".", ",") if comma and k == 1 else str(c))
                                      for k, c in enumerate(row)) + "\n")
names = ("id", "age", "city", "when", "bought")
write("table.csv", names, rows, ";", True)
write("first.csv", names, rows[:40], ";", True)
write("plain.csv", None, rows[:40], ",", False)
write("bare.csv", None, [r[1:3] for r in rows[:40]], ",", False)
write("unlabelled.csv", None, [r[:4] for r in rows[:40]], ",", False)
write("mixed.csv", ("city", "note", "age"), [(r[2], 'n "1",', r[1]) for r in rows[:40]], "|", False)
PYTHON
settings=missing=mean,ignore=id,when
ran 0 --dataset="csv:file=table.csv,$settings" --model=mlp:hidden=8 --optimizer=adam:rate=0.02 --epochs=40 \
    --batch=16 --devices=cpu:0 --out=run
says "separator ';', decimal comma, header, 1 number, 1 category, 2 columns ignored" out
says 'Test-Accuracy: 1.0000' out

# The same predictions however the table is written; labels are seen where they are.
ran 0 predict --checkpoint=run --top=2 first.csv
says 'Accuracy: 1.0000 (40 of 40)' out
head -n 40 out >expected
grep -qc '^Prediction is "yes" (.*%), "no" (.*%)$' expected || fail "predicts: $(head -n 3 expected)"
for file in plain.csv bare.csv unlabelled.csv mixed.csv; do
    ran 0 predict --checkpoint=run --top=2 $file
    head -n 40 out | cmp -s - expected || fail "$file: $(diff out expected | head -n 4)"
    [ "$(sed -n '41,$p' out)" = "$([ $file != plain.csv ] || echo 'Accuracy: 1.0000 (40 of 40)')" ] ||
        fail "$file: $(sed -n '41,$p' out)"
done
"$TRAINER" predict --checkpoint=run --top=2 - <mixed.csv >out 2>err || fail "standard input: $(cat err)"
cmp -s out expected || fail "standard input: $(diff out expected | head -n 4)"

sed 's/,yes$/,no/; t; s/,no$/,yes/' plain.csv >wrong.csv
ran 0 predict --checkpoint=run wrong.csv
says 'Accuracy: 0.0000 (0 of 40)' out

# As CSV: what the network does not take comes first, in the order of the file.
ran 0 predict --checkpoint=run --format=csv first.csv
says 'trainer: Accuracy: 1.0000 (40 of 40)' err
cp out first.out
ran 0 predict --checkpoint=run --format=csv mixed.csv
[ ! -s err ] || fail "mixed.csv: $(cat err)"
python3 - <<'PYTHON' || fail "CSV: $(head -n 3 first.out out)"
import csv
first, mixed, lines = (list(csv.reader(open("first.out"))), list(csv.reader(open("out"))),
                       list(open("expected")))
assert first[0] == ["id", "when", "bought", "prediction", "probability=no", "probability=yes"], first[0]
assert mixed[0] == ["note", "prediction", "probability=no", "probability=yes"], mixed[0]
assert len(first) == len(mixed) == 41
for i in range(40):
    assert first[i + 1][:2] == [str(i), "1.2.2024"] and mixed[i + 1][0] == 'n "1",', (first[i + 1],
                                                                                      mixed[i + 1])
    assert first[i + 1][3:] == mixed[i + 1][1:] and abs(sum(map(float, first[i + 1][4:])) - 1) < 1e-5, (
        first[i + 1])
    assert (f'Prediction is "{first[i + 1][3]}" ({100 * max(map(float, first[i + 1][4:])):.1f}%)' in
            lines[i]), (first[i + 1], lines[i])
PYTHON

# What training did not have.
printf 'city,age,bought\nParis,3,yes\nWien,,maybe\nWien,NA,\n' >odd.csv
ran 0 predict --checkpoint=run odd.csv
says 'trainer: odd.csv: values that training did not have count as none: 1 cell' err
says 'trainer: odd.csv: labels that are not a class of the network count as wrong: 1' err
tail -n 1 out | grep -Eq '^Accuracy: 0\.[05]000 \([01] of 2\)$' || fail "odd.csv: $(tail -n 1 out)"
ran 3 predict --checkpoint=run - <<<$'city,years\nWien,3'
says 'trainer: standard input: row 1: found no column "age", expected the columns of training' err
ran 3 predict --checkpoint=run - < <(printf '\377\3761\0,\0002\0\n\0')
says 'trainer: standard input: found UTF-16, expected text in UTF-8 (iconv converts)' err
ran 3 predict --checkpoint=run - <<<'1,2,3,4,5,6'
says 'trainer: standard input: row 1: found 6 cells, expected 2 as in training' err

# Of several files each line begins with the name; the columns before the prediction are those of the first.
ran 0 predict --checkpoint=run plain.csv bare.csv
[ "$(grep -c '^plain.csv: Prediction is "' out) $(grep -c '^bare.csv: Prediction is "' out)" = "40 40" ] ||
    fail "two tables: $(head -n 2 out)"
says 'plain.csv: Accuracy: 1.0000 (40 of 40)' out
ran 2 predict --checkpoint=run --format=csv odd.csv odd.csv mixed.csv
[ "$(cut -d, -f1,2 out | tr '\n' ' ')" = "file,bought $(printf 'odd.csv,%s ' yes maybe '' yes maybe '')" ] ||
    fail "two tables: $(cat out)"
[ "$(grep -c '^trainer: odd.csv: Accuracy: 0' err)" -eq 2 ] || fail "two tables: $(cat err)"
says 'trainer: mixed.csv: found the columns "file,note," before the prediction, expected "file,bought," '\
'as of odd.csv, with --format=csv' err
ran 3 predict --checkpoint=run --format=csv - <<<$'city,age\nWien,x'
[ ! -s out ] || fail "a header without rows: $(cat out)"
# Without a way to fill them in, missing cells are refused.
ran 0 --quiet --dataset="csv:file=table.csv,columns=age,missing=drop" --model=softmax --epochs=1 \
    --devices=cpu:0 --out=dropped
grep -q 'trainer: table.csv: rows left out, as something is missing in them: [1-9]' err ||
    fail "missing=drop: $(cat err)"
ran 3 predict --checkpoint=dropped odd.csv
says 'trainer: odd.csv: row 3, column 2 "age": found an empty cell, expected a number; '\
'a network trained with missing=mean takes such cells' err

# A network of another data set takes a label behind the features, too.
ran 0 --quiet --dataset=iris --model=softmax --epochs=2 --devices=cpu:0 --out=iris
ran 0 predict --checkpoint=iris - <<<$'5.1,3.3,1.7,0.5\n6.9,3.1,5.4,2.1'
[ "$(wc -l <out)" -eq 2 ] || fail "iris: $(cat out)"
ran 0 predict --checkpoint=iris - <<<$'5.1,3.3,1.7,0.5,Setosa\n6.9,3.1,5.4,2.1,Virginica'
tail -n 1 out | grep -Eq '^Accuracy: [01]\.[05]000 \([012] of 2\)$' || fail "iris with labels: $(cat out)"
# Labels may number classes that have names; where none is a class, nothing is said of how many are right.
cp out named
ran 0 predict --checkpoint=iris - <<<$'5.1,3.3,1.7,0.5,0\n6.9,3.1,5.4,2.1,2'
diff named out && [ ! -s err ] || fail "iris with numbers: $(cat err)"
ran 0 predict --checkpoint=iris - <<<$'5.1,3.3,1.7,0.5,3\n6.9,3.1,5.4,2.1,red'
says 'trainer: standard input: no accuracy, as no label is a class of the network: found "3", '\
'expected one of 3, "Setosa" to "Virginica"' err
! grep Accuracy out || fail "an accuracy without a class"

# TensorFlow's first line: how many rows and features follow, and the classes, which labels number.
printf '4,2,up,down,left\n1,2,1\n2,1,0\n1,3,1\n3,1,0\n' >counted.csv
printf '2,2,down,up\n1,2,0\n2,1,1\n' >other.csv
ran 0 --quiet --dataset=csv:file=counted.csv,test_file=other.csv --model=softmax --optimizer=sgd:rate=1 \
    --batch=4 --epochs=9 --devices=cpu:0 --out=counted
says 'Test-Accuracy: 1.0000' out
ran 0 predict --checkpoint=counted --top=3 other.csv
says 'Accuracy: 1.0000 (2 of 2)' out
grep -q '^Prediction is "down" (.*%), "up" (.*%), "left" (.*%)$' out || fail "counted.csv: $(cat out)"

# Evaluation and a resumed run prepare the examples again, as they were.
ran 0 evaluate --checkpoint=run
says 'Test-Accuracy: 1.0000' out
ran 0 --quiet --resume=run --epochs=41
says 'Test-Accuracy: 1.0000' out

[ $failures -eq 0 ]
