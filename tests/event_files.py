"""event_files.py RUN N: the event files of a run with --scalars=N, and two workers, have what steps.csv
and epochs.csv have. A plain reader of them, which knows only Python's own library; as a module, the same
checks for another reader (outputs/tensorboard_reader.sh)."""
import csv, json, os, struct, sys

TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)

def masked(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = TABLE[(c ^ byte) & 255] ^ c >> 8
    c ^= 0xFFFFFFFF
    return (c >> 15 | c << 17) + 0xA282EAD8 & 0xFFFFFFFF

def varint(data, at):
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at

def message(data):
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            length, at = (8, at) if key & 7 == 1 else (4, at) if key & 7 == 5 else varint(data, at)
            value, at = data[at:at + length], at + length
        fields.setdefault(key >> 3, []).append(value)
    return fields

def events(path):
    data, at = open(path, "rb").read(), 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert masked(data[at:at + 8]) == struct.unpack_from("<I", data,
                                                             at + 8)[0], f"{path}: a length at {at}"
        if at + length + 16 > len(data):
            break # the run was killed
        body, at = data[at + 12:at + 12 + length], at + length + 16
        assert masked(body) == struct.unpack_from("<I", data, at - 4)[0], f"{path}: a record before {at}"
        yield message(body)

def read(folder):
    """{tag: [(step, value)]}: scalars as floats, histograms as lists, the others as they are"""
    tags, started = {}, False
    for name in sorted(n for n in os.listdir(folder) if "tfevents" in n):
        first = next(events(f"{folder}/{name}"))
        assert first[3] == [b"brain.Event:2"], f"{name}: {first}"
        for event in events(f"{folder}/{name}"):
            step = event[2][0]
            if 7 in event: # SessionLog
                if started:
                    tags = {tag: [p for p in points if p[0] < step] for tag, points in tags.items()}
                started = True
            if 4 in event:
                tags.setdefault("graph", []).append((step, message(event[4][0])))
            for value in message(event[5][0]).get(1, []) if 5 in event else []:
                value = message(value)
                if 2 in value:
                    found = struct.unpack("<f", value[2][0])[0]
                elif 4 in value:
                    image = message(value[4][0])
                    found = (image[2][0], image[1][0], image[4][0])
                elif 4 in message(value[8][0]):
                    raw = message(value[8][0])[4][0]
                    found = list(struct.unpack(f"<{len(raw) // 8}d", raw))
                else:
                    found = message(value[9][0])
                tags.setdefault(value[1][0].decode(), []).append((step, found))
    return tags

def starts(folder):
    files = sorted(n for n in os.listdir(folder) if "tfevents" in n)
    return [e[2][0] for n in files for e in events(f"{folder}/{n}") if 7 in e]

def small(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]

def table(path):
    return list(csv.DictReader(open(path)))

EPOCH = ["train_loss", "test_loss", "test_accuracy", "examples_per_s", "time_s"]
STEP = ["loss", "learning_rate"]

def near(a, b): # tables have six digits
    return abs(a - b) <= 1e-6 + 1e-5 * abs(b)

def same(what, found, expected):
    assert [p[0] for p in found] == [p[0] for p in expected], (
        f"{what}: steps {[p[0] for p in found]}, expected {[p[0] for p in expected]}")
    for (step, a), (_, b) in zip(found, expected):
        assert near(a, b), f"{what}: {a} at {step}, expected {b}"

def check_scalars(run, every, scalars):
    """scalars(folder): {tag: [(step, value)]}"""
    # One that got no batch to compute in time has no points.
    rows, epochs, main = table(f"{run}/steps.csv"), table(f"{run}/epochs.csv"), scalars(run)
    for name in EPOCH:
        same(name, main[f"epoch/{name}"], [(int(e["epoch"]), small(e[name])) for e in epochs])
    for name in ["wait_share", "staleness_mean", "staleness_p99", "learning_rate", "lost_updates"]:
        assert [p[0] for p in main[f"epoch/{name}"]] == [int(e["epoch"]) for e in epochs], name
    for w in sorted({r["worker"] for r in rows}):
        of, mine = scalars(f"{run}/worker-{w}"), [r for r in rows if r["worker"] == w]
        points = [r for r in mine if int(r["step"]) % every == 0]
        for name in STEP:
            same(f"worker {w}: {name}", of.get(f"step/{name}", []),
                 [(int(p["step"]), small(p[name])) for p in points])
        # Of the rows since the last point, or since this part of the run began.
        parts_of_run = starts(f"{run}/worker-{w}")
        by_step = {int(r["step"]): r for r in mine}
        for name, column, total in [("staleness_mean", "staleness", None), ("wait_share", "wait_ms", 1)]:
            for step, value in of.get(f"step/{name}", []):
                begin = max([step - every + 1] + [s for s in parts_of_run if s <= step])
                window = [by_step[s] for s in range(begin, step + 1)]
                parts = [sum(float(r[c]) for c in r if c.endswith("_ms")) for r in window]
                expected = sum(float(r[column]) for r in window) / (sum(parts) if total else len(window))
                assert abs(value - expected) < 1e-4, (
                    f"worker {w}: {name} {value} at {step}, expected {expected}")
    return rows, epochs

def check_histograms(run, rows, epochs, histograms):
    main = histograms(run)
    layers = [tag for tag in main if tag.startswith(("weights/", "gradients/"))]
    assert {"weights/dense1/kernel", "gradients/dense1/kernel"} < set(layers) and len(layers) == 8, layers
    for tag in layers:
        assert [p[0] for p in main[tag]] == [int(e["epoch"]) for e in epochs], f"{tag}: {main[tag]}"
    count = sum(main["weights/dense2/bias"][0][1][2::3])
    assert count == 10, f"{count} weights in the histogram of ten biases"
    assert main["weights/dense2/bias"][-1] != main["gradients/dense2/bias"][-1], "gradients are the weights"
    shards = {tag: sum(sum(h[2::3]) for _, h in points)
              for tag, points in main.items() if tag.startswith("staleness/shard-")}
    assert (len(shards) == json.load(open(f"{run}/summary.json"))["shards"] and
            set(shards.values()) == {len(rows)}), f"{shards}, {len(rows)} steps"
    for w in sorted({r["worker"] for r in rows}):
        found = histograms(f"{run}/worker-{w}")["staleness"]
        mine = [r for r in rows if r["worker"] == w]
        assert sum(sum(h[2::3]) for _, h in found) == len(mine), f"worker {w}: {len(mine)} steps, {found}"
        mean = sum(float(r["staleness"]) for r in mine) / len(mine)
        middle = sum((h[i] + h[i + 1]) / 2 * h[i + 2] for _, h in found
                     for i in range(0, len(h), 3)) / len(mine)
        widest = max(h[i + 1] - h[i] for _, h in found for i in range(0, len(h), 3))
        assert abs(mean - middle) < widest, f"worker {w}: staleness {mean}, in the histogram {middle}"

if __name__ == "__main__":
    run, every = sys.argv[1], int(sys.argv[2])
    rows, epochs = check_scalars(run, every, read)
    check_histograms(run, rows, epochs, read)
    tags = read(run)
    for tag in ["config", "_hparams_/experiment", "_hparams_/session_start_info"]:
        assert tag in tags, f"no {tag}"
    nodes = [message(n) for n in read(f"{run}/worker-1")["graph"][0][1][1]]
    assert {n[4][0] for n in nodes} == {b"cpu:1"} and b"dense1/matmul" in [n[1][0] for n in nodes], nodes[:3]
