#!/usr/bin/env python3
"""Draws what each worker did, step by step, as an SVG: one lane a worker, from the steps.csv of one or more runs.

usage: bench/timeline.py OUT.svg FROM_S LENGTH_MS TITLE=RUN_DIR [TITLE=RUN_DIR ...]
"""
import csv, os, sys

PARTS = [("input_ms", "#9aa5b1", "input"), ("pull_ms", "#4f9dd9", "pull"), ("wait_ms", "#e0564f", "waiting"),
         ("compute_ms", "#59a96a", "compute"), ("push_ms", "#f0a93b", "push")]
WIDTH, LEFT, LANE, GAP = 960, 150, 20, 6


def lanes(folder, begin, length):
    rows = list(csv.DictReader(open(os.path.join(folder, "steps.csv"))))
    for worker in sorted({r["worker"] for r in rows}, key=int):
        mine, boxes = [r for r in rows if r["worker"] == worker], []
        for r in mine:
            end = 1e3 * (float(r["time_s"]) - begin)
            at = end - sum(float(r[p]) for p, _, _ in PARTS)
            if end < 0 or at > length: continue
            for part, colour, _ in PARTS:
                took = float(r[part])
                a, b = max(at, 0.0), min(at + took, length)
                if b > a: boxes.append((a, b, colour, r["step"] if part == "compute_ms" else "", int(r["staleness"])))
                at += took
        yield f"worker {worker} ({mine[0]['device']})", boxes


def draw(out, begin, length, runs):
    scale, y, body = (WIDTH - LEFT - 10) / length, 8, []
    for title, folder in runs:
        body.append(f'<text x="8" y="{y + 14}" font-weight="bold">{title}</text>'); y += 22
        for name, boxes in lanes(folder, begin, length):
            body.append(f'<text x="8" y="{y + 14}">{name}</text>')
            for a, b, colour, step, stale in boxes:
                x, w = LEFT + a * scale, max((b - a) * scale, 0.4)
                body.append(f'<rect x="{x:.2f}" y="{y}" width="{w:.2f}" height="{LANE}" fill="{colour}"/>')
                if step and w > 44:
                    body.append(f'<text x="{x + 4:.1f}" y="{y + 14}" fill="#fff" font-size="10">{step}' + (f" stale {stale}" if stale else "") + "</text>")
            y += LANE + GAP
        y += 8
    for i in range(6):
        x = LEFT + i * (WIDTH - LEFT - 10) / 5
        body.append(f'<text x="{x:.0f}" y="{y + 10}" fill="#666" font-size="11" text-anchor="{"end" if i == 5 else "middle"}">{i * length / 5:.1f} ms</text>')
    x = LEFT; y += 18
    for _, colour, label in PARTS:
        body.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/><text x="{x + 16}" y="{y + 11}">{label}</text>'); x += 90
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 20}" font-family="sans-serif" font-size="12">'
           f'<rect width="100%" height="100%" fill="#fff"/>' + "\n".join(body) + "</svg>\n")
    open(out, "w").write(svg)


def main():
    if len(sys.argv) < 5 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stdout if "--help" in sys.argv else sys.stderr)
        sys.exit(0 if "--help" in sys.argv else 2)
    try:
        draw(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), [a.rsplit("=", 1) for a in sys.argv[4:]])
    except (OSError, ValueError) as error:
        sys.exit(f"timeline.py: {error}")


if __name__ == "__main__":
    main()
