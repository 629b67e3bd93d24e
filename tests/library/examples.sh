#!/bin/bash
# Every program of examples/ runs and prints what it should; none is forgotten here.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
cd "$scratch" || exit 1

declare -A expected
expected[first]='add=5, mul=6, pow=15625
the useless node was skipped
[3, 1] + [4.5, 2] = [7.5, 3]
[1, 3] + [2, 4] = [3, 7]
counter=3'
expected[regression]='determinant 816
y = 2.000 + 3.000 a + -1.000 b'
expected[place]='[74, 88; 106, 128]
node 0, placeholder, on cpu:0
node 1, placeholder, on cpu:1
node 2, matmul, on cpu:0
node 3, matmul, on cpu:1
node 4, add, on cpu:0
node 3 crosses from cpu:1 to cpu:0: 16 bytes'
expected[newton]='a = 2: root 1.41421, derivative 0.35355
a = 9: root 3.00000, derivative 0.16667
a = -16: root 4.00000, derivative -0.12500'
expected[shuffle]='step 0: the sum is 21
step 0: the sum is 21, the same order
step 1: the sum is 21, another order'
expected[queue]='took 1.5
took 4.5
took 9.5
took 16.5
took 25.5'
expected[custom]='softplus(-2) = 0.1269, slope 0.1192
softplus(0) = 0.6931, slope 0.5000
softplus(3) = 3.0486, slope 0.9526'
expected[embedded]='epoch 20
epoch 40
more than 90 % of the test points are right: yes
(0, 0) is inside
(0.9, -0.9) is outside'
expected[strategy]='dense1/kernel: 1280 numbers, the same as with sync
dense1/bias: 20 numbers, the same as with sync
dense2/kernel: 200 numbers, the same as with sync
dense2/bias: 10 numbers, the same as with sync'

# A program that does what the verb does: the same lines but for times, the same model.
expected[program]=elsewhere
settings=(dataset=digits model=mlp:hidden=20 "devices=cpu:0,cpu:1" epochs=2 threads=1)
plain() {
    sed -E 's/\b(verb|library)\b/FOLDER/; s/[0-9.,]+ examples\/s.*//; s/^Total Time: .*//; '\
'/^Where the time went/,$d' "$1"
}
"$TRAINER" train "${settings[@]/#/--}" --out=verb >verb.out 2>verb.err || fail "trainer: $(cat verb.err)"
"$BUILD/examples/program" "${settings[@]}" out=library >library.out 2>library.err ||
    fail "program: $(cat library.err)"
diff <(plain verb.out) <(plain library.out) >differs || fail "the verb and the library print: $(cat differs)"
cmp verb/model.safetensors library/model.safetensors || fail "the verb and the library learn otherwise"
"$BUILD/examples/program" "${settings[@]}" out=library 2>err
[ $? -eq 3 ] && grep -q '^program: library has a run' err || fail "a folder with a run: $(cat err)"
"$BUILD/examples/program" resume=library epochs=3 >out 2>err && grep -q '^Epoch  *3/3' out ||
    fail "going on: $(cat out err)"

for source in "$root"/examples/*.c; do
    name=$(basename "$source" .c)
    [ -n "${expected[$name]:-}" ] || { fail "examples/$name.c has no expectation here"; continue; }
    [ "${expected[$name]}" != elsewhere ] || continue
    "$BUILD/examples/$name" >out 2>err || fail "examples/$name: exit code $?: $(cat err)"
    [ ! -s err ] || fail "examples/$name: said: $(cat err)"
    [ "$(cat out)" = "${expected[$name]}" ] || fail "examples/$name: printed: $(cat out)"
done

[ $failures -eq 0 ]
