#!/bin/bash
# What NumPy itself saves: np.savez, np.savez_compressed and np.save, every kind of item in both byte orders
# and both orders of dimensions, train to the same bits as the same numbers saved as little-endian floats.
set -u
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../setup.sh"
need python3
cd "$scratch" || exit 1

# shellcheck source=tests/python_clients.sh
. "$tests/python_clients.sh"
python_with numpy "NumPy is"

"$python" - <<'PYTHON' || fail "NumPy makes no files"
import numpy as np
from numpy.lib import format as npy
r = np.random.default_rng(1)
y = r.integers(0, 3, 90)
x = r.integers(0, 2, (90, 4, 5)) * (1 + y[:, None, None])  # 0 to 3: every kind holds them

def save(name, x, y=y, write=np.savez):
    write(name + ".npz", x=x, y=y)
    print(name)
save("plain", x.astype("<f4"))
for order in "<>":
    for kind in ("i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"):
        save(f"{kind}{'big' if order == '>' else ''}", x.astype(order + kind),
             write=np.savez_compressed if kind[0] == "i" else np.savez)
save("fortran", np.asfortranarray(x.astype("f4")))
save("view", x.astype("f8").transpose(0, 2, 1)[:, ::-1].transpose(0, 2, 1)[:, :, ::-1])
save("classes", x.astype("f4"), np.array([-7, 0, 2**62])[y])
save("unsigned", x.astype("f4"), y.astype(">u2"))
save("column", x.astype("f4"), y[:, None].astype("i1"))
save("onehot", x.astype("f4"), np.eye(3, dtype="f4")[y])
save("bools", x.astype("f4"), np.eye(3, dtype="?")[y], np.savez_compressed)
save("named", x.astype("f4").view(type("Sub", (np.ndarray,), {})))
np.save("images.npy", x.astype("f4"))
np.save("labels.npy", y)
for version in ((1, 0), (2, 0), (3, 0)):
    with open(f"version{version[0]}.npy", "wb") as file:
        npy.write_array(file, x.astype("f4"), version)
for name, array in (("object", np.array([[1, "a"], [2, None]] * 45, dtype=object)),
                    ("text", np.array(["a", "b", "c"])[y]), ("complex", x.astype("c8")),
                    ("record", np.zeros(90, [("a", "f4"), ("b", "i4")])), ("date", np.zeros(90, "M8[s]")),
                    ("empty", np.zeros((0, 4), "f4")), ("scalar", np.float32(3))):
    np.savez(f"bad-{name}.npz", x=array, y=y)
PYTHON

train() { # folder, data set
    "$TRAINER" --dataset="$2" --devices=cpu:0,cpu:1 --strategy=sync --batch=8 --epochs=2 \
        --quiet --replace --out="$1" >out 2>err ||
        fail "$2: exit code $?: $(cat err)"
}
same() { same_weights "$1, beside little-endian floats" plain "$1"; }
train plain npz:file=plain.npz,x=x,y=y
for archive in [a-z]*.npz; do
    name=${archive%.npz}
    case $name in plain | view | bad-*) continue ;; esac
    train "$name" "npz:file=$archive,x=x,y=y"
    same "$name"
done
train view npz:file=view.npz,x=x,y=y
for file in images version1 version2 version3; do
    train $file npz:x=$file.npy,y=labels.npy
    same $file
done
for archive in bad-*.npz; do
    "$TRAINER" --dataset="npz:file=$archive,x=x,y=y" --epochs=1 --quiet --out=never >out 2>err
    [ $? -eq 3 ] && [ "$(wc -l <err)" -eq 1 ] || fail "$archive: expected code 3 and one line: $(cat err)"
done
"$TRAINER" --dataset=npz:file=bad-object.npz,x=x,y=y --quiet --out=never 2>&1 |
    grep -q 'found Python objects' || fail "objects: other words"
[ $failures -eq 0 ]
