#!/bin/bash
# What deploy/ has is what the programs read that it is for: Kubernetes' schemas, of the package
# kubernetes-validate, find nothing wrong; systemd and bash neither, where they are here. What is said there
# is what the program understands: options, addresses, ports, exit codes. The command lines of pods run here.
# shellcheck disable=SC2086,SC2016,SC1003 # options are several words; what is quoted is for others
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"
deploy=$root/deploy

# --- Slurm's script, run by a shell: srun and scontrol are scripts that say what they were given ---
bash -n "$deploy/slurm.sbatch" || fail "slurm.sbatch: no bash"
if command -v shellcheck >/dev/null; then
    shellcheck "$deploy/slurm.sbatch" || fail "slurm.sbatch: shellcheck"
fi
mkdir bin
printf '#!/bin/sh\necho "$@" >>srun.log\nexit ${SRUN_CODE:-0}\n' >bin/srun
printf '#!/bin/sh\necho "$@" >>scontrol.log\n' >bin/scontrol
chmod +x bin/srun bin/scontrol
batch() { # exit code of srun, expected words to scontrol
    rm -f srun.log scontrol.log
    PATH=$scratch/bin:$PATH SLURM_JOB_ID=7 TRAINER=$TRAINER SRUN_CODE=$1 bash "$deploy/slurm.sbatch" \
        >out 2>err
    code=$?
    [ $code -eq "$1" ] || fail "slurm.sbatch: exit code $code, of srun $1: $(cat err)"
    [ "$(cat scontrol.log 2>/dev/null)" = "$2" ] ||
        fail "slurm.sbatch: after $1 scontrol was told: $(cat scontrol.log)"
    [ -z "$(find . -maxdepth 1 -name '.trainer-*')" ] || fail "slurm.sbatch: the key stays"
}
batch 0 ''
! grep -q resume srun.log || fail "slurm.sbatch: goes on from nothing: $(cat srun.log)"
for code in 5 130 137; do batch $code 'requeue 7'; done
for code in 2 3 6; do batch $code ''; done
mkdir -p run/checkpoint && : >run/checkpoint/state.safetensors
batch 0 ''
grep -q -e '--resume=run' srun.log || fail "slurm.sbatch: does not go on: $(cat srun.log)"
rm -rf run

# --- systemd's unit ---
if command -v systemd-analyze >/dev/null; then
    sed "s|/usr/local/bin/trainer|$TRAINER|" "$deploy/trainer@.service" >trainer@.service
    systemd-analyze verify ./trainer@.service >out 2>&1 || fail "trainer@.service: $(cat out)"
fi

# --- the image: a build and what runs it, of the same Debian; the packages that the README names ---
[ "$(grep -c '^FROM docker.io/library/debian:bookworm-slim' "$deploy/Containerfile")" -eq 2 ] ||
    fail "Containerfile: two stages of one Debian"
packages=$(sed -n '/^apt-get install/,/^```/p' "$root/README.md" | tr -d '\\' | tr ' ' '\n' |
    grep -Ex '[a-z0-9.+-]+' | grep -vx -e apt-get -e install -e python3)
for package in $packages; do
    grep -qw -e "$package" "$deploy/Containerfile" ||
        fail "Containerfile does not install $package, as README.md does"
done

# --- Kubernetes ---
environment=$BUILD/deploy-clients
if [ ! -e "$environment/made" ]; then
    {
        python3 -m venv "$environment" && timeout 200 "$environment/bin/python" \
            -m pip install -q --retries 0 --timeout 10 kubernetes-validate==1.37.0
    } >"$scratch/venv.log" 2>&1 &&
        : >"$environment/made"
fi
[ -e "$environment/made" ] || {
    [ $failures -eq 0 ] || exit 1
    echo "kubernetes-validate is not here and cannot be installed"
    exit 77
}
cat >pods.py <<'PYTHON'
"""Checks the manifests, and prints the words of each container: "NAME<tab>word<tab>word"."""
import glob, sys, yaml, kubernetes_validate

deploy = sys.argv[1]
wrong = []

def check(thing, where):
    try:
        kubernetes_validate.validate(thing, "1.37", strict=True)
    except Exception as e:
        wrong.append(f"{where}: {e}")

def pods(documents):
    for d in documents:
        if d["kind"] == "TFJob":
            for role, spec in d["spec"]["tfReplicaSpecs"].items():
                yield f"tfjob-{role}", spec["template"], spec
        elif "template" in d.get("spec", {}):
            yield d["metadata"]["name"], d["spec"]["template"], d["spec"]

for path in sorted(glob.glob(f"{deploy}/kubernetes/*.yaml") + [f"{deploy}/tfjob.yaml"]):
    documents = list(yaml.safe_load_all(open(path)))
    secrets = set()
    for d in documents:
        if d["kind"] != "TFJob":
            check(d, path)
    for name, template, spec in pods(documents):
        pod = template["spec"]
        # of a TFJob the pods alone have a schema here; their restart policy is the replica's
        check({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
               "spec": {**pod, "restartPolicy": "Never"}}, f"{path}: {name}")
        container = pod["containers"][0]
        if container["image"] != "trainer:latest":
            wrong.append(f"{name}: image {container['image']}")
        if pod.get("terminationGracePeriodSeconds", 30) < 60:
            wrong.append(f"{name}: less than 60 s for a checkpoint")
        if (pod.get("restartPolicy") or spec.get("restartPolicy")) != "OnFailure":
            wrong.append(f"{name}: is not started again on failure")
        secrets |= {v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        print("\t".join([name, *(w.replace("\n", "\r")
                                 for w in container.get("command", []) + container.get("args", []))]))
        for probe in ("readinessProbe", "livenessProbe"):
            if probe in container:
                print("\t".join(["probe", *container[probe]["exec"]["command"]]))
    if secrets != {"trainer-key"}:
        wrong.append(f"{path}: secrets {secrets}")
    for d in documents:
        if d["kind"] == "ConfigMap":
            for key, value in d["data"].items():
                print(f"{key}\t{value}")
            jobs = {j["metadata"]["name"]: j["spec"] for j in documents if j["kind"] == "Job"}
            service = next(s for s in documents if s["kind"] == "Service")
            port = service["spec"]["ports"][0]["port"]
            for key, job in ("PS_HOSTS", "trainer-ps"), ("WORKER_HOSTS", "trainer-worker"):
                hosts = [f"{job}-{i}.{service['metadata']['name']}:{port}"
                         for i in range(jobs[job]["completions"])]
                if d["data"][key] != ",".join(hosts) or jobs[job]["completions"] != jobs[job]["parallelism"]:
                    wrong.append(f"{key}: {d['data'][key]}, expected {hosts}")
                if jobs[job]["template"]["spec"]["subdomain"] != service["metadata"]["name"]:
                    wrong.append(f"{job}: its subdomain is not the service")
print(*wrong, sep="\n", file=sys.stderr)
sys.exit(1 if wrong else 0)
PYTHON
"$environment/bin/python" -IS -c 'import sys, site; site.main(); exec(open(sys.argv.pop(1)).read())' \
    pods.py "$deploy" >pods 2>wrong || fail "manifests: $(cat wrong)"
grep -q trainer-worker pods || { fail "no pods: $(cat wrong)"; exit 1; }

# The cluster of cluster.yaml, here: its names become addresses of this machine, its key a file; and one
# worker is asked to go.
"$TRAINER" keygen key >/dev/null || exit 1
port=$(free_ports 4)
PS_HOSTS=127.0.0.1:$port WORKER_HOSTS=127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2)),127.0.0.1:$((port + 3))
export PS_HOSTS WORKER_HOSTS
words_of() { # container, index: sets $words
    mapfile -t words < <(grep "^$1	" pods | head -n 1 | cut -f2- | tr '\t' '\n')
    words=("${words[@]//$'\r'/$'\n'}")
    words=("${words[@]//\/key\/cluster.key/key}")
    words=("${words[@]//127.0.0.1:2222/127.0.0.1:$port}")
    words=("${words[@]//'$(PS_HOSTS)'/$PS_HOSTS}")
    words=("${words[@]//'$(WORKER_HOSTS)'/$WORKER_HOSTS}")
    words=("${words[@]//'$(JOB_COMPLETION_INDEX)'/${2:-}}")
}
mkdir path && ln -s "$TRAINER" path/trainer
PATH=$scratch/path:$PATH
words_of trainer-ps
start ps "${words[@]}"
words_of probe
wait_until "${words[@]}" >/dev/null 2>&1
for index in 0 1 2; do
    words_of trainer-worker $index
    start "w$index" trainer "${words[@]}" --devices=cpu:0 --threads=1
done
if grep -q 'cannot encrypt' ps.err; then for name in ps w0 w1 w2; do signal 9 $name; done; else
    ends 0 ps w0 w1 w2
    summary_is "the pods' words" 'lost_workers, round(epochs)' '(0, 100)'
    words_of trainer-ps # started again before, it goes on
    grep -Eq -e '--out=run --restart-wait=[0-9]+ --workers=1\.\.$' <<<"${words[*]}" ||
        fail "the ps does not go on: ${words[*]}"
fi
words_of tfjob-PS
grep -Eq -e '--secret-file=key .* --restart-wait=[0-9]+ --workers=1\.\.$' <<<"${words[*]}" ||
    fail "the TFJob has no key, or does not go on: ${words[*]}"

[ $failures -eq 0 ]
