#!/bin/bash
# Clusters with a key: runs over encrypted connections are the runs in clear, bit for bit; who holds no key,
# another one, or speaks in clear, is refused in words on both sides, while all others go on; and no other
# machine is spoken to in clear unless that was said.
# shellcheck disable=SC2086 # options are several words
set -u
# shellcheck source=tests/processes.sh
. "$(dirname "$0")/../processes.sh"

# --- the key ---
if ! "$TRAINER" keygen key >out 2>err; then fail "keygen: $(cat err)"; fi
"$TRAINER" keygen other >/dev/null
[ "$(stat -c %a key)" = 600 ] && grep -Eqx '[0-9a-f]{64}' key || fail "keygen wrote $(ls -l key): $(cat key)"
! cmp -s key other || fail "two keys are one"
before=$(cat key)
refused_with 3 'key already exists; a key is never overwritten' keygen key
[ "$(cat key)" = "$before" ] || fail "keygen overwrote a key"
refused_with 2 'keygen: expected the name of one new file, found 2' keygen a b
refused_with 3 'nowhere/key: cannot be written' keygen nowhere/key

new_cluster 1 1
job="--job=ps --task=0 $hosts --out=run"
refused_with 3 'missing: No such file or directory' $job --secret-file=missing
refused_with 3 '\.: expected a file with a key' $job --secret-file=.
install -m 644 key open
refused_with 3 'open: others can read this key \(mode 644\): expected mode 600, as after chmod 600 open' \
    $job --secret-file=open
for text in '' "${before%?}" "${before}0" "${before%?}g" "$before $before"; do
    (umask 077 && echo "$text" >wrong)
    refused_with 3 'wrong: expected a key of 64 hexadecimal digits, as trainer keygen makes it' $job \
        --secret-file=wrong
    rm wrong
done
TRAINER_SECRET=12 refused_with 2 'TRAINER_SECRET: expected a key of 64 hexadecimal digits' $job
[ ! -e run ] || fail "a refused key left $(ls run)"

if ! "$TRAINER" $job --secret-file=key --start-timeout=0.1 2>&1 | grep -q 'encrypted'; then
    run 2 $job --secret-file=key
    grep -q 'this build cannot encrypt: install' err || fail "a build that cannot encrypt said $(cat err)"
    echo "OpenSSL is not here"
    exit $((failures > 0 ? 1 : 77))
fi
rm -rf run

# --- the bits of one process: over one parameter server, over two, mirrored; from a file and from the
# environment ---
alone() { # label, options...
    local label=$1
    shift
    "$TRAINER" --quiet $small --epochs=1 --devices=cpu:0,cpu:1 --threads=1 --replace --out=alone "$@" \
        >alone.out || fail "$label alone: exit code $?"
    same_weights "$label" run alone
}
cluster_of() { # parameter servers, workers, options...
    local servers=$1 workers=$2 i
    shift 2
    new_cluster $servers $workers
    rm -rf run
    all=''
    for ((i = servers - 1; i >= 0; i--)); do
        start ps$i "$TRAINER" --job=ps --task=$i $hosts --replace --out=run$([ $i -eq 0 ] || echo "-$i") "$@"
        all+=" ps$i"
    done
    for ((i = 0; i < workers; i++)); do
        if [ $servers -gt 0 ]; then start_worker $i "$@"; else start_worker $i --replace --out=run "$@"; fi
        all+=" w$i"
    done
}
for strategy in sync local-sgd async-lockfree; do
    cluster_of 1 2 --quiet $small --epochs=1 --strategy=$strategy --secret-file=key
    ends 0 $all
    same_results $all
    [ $strategy = async-lockfree ] || alone "$strategy, encrypted" --strategy=$strategy
done
cluster_of 2 2 --quiet $small --epochs=1 --secret-file=key
ends 0 $all
alone "two parameter servers, encrypted"
TRAINER_SECRET=$before cluster_of 0 2 --quiet $small --epochs=1
ends 0 $all
alone "mirrored, encrypted"

# --- strangers: without a key, with another, with a protocol of their own, with none at all; then those who
# hold the key come ---
new_cluster 1 2
rm -rf run
start ps "$TRAINER" --job=ps --task=0 $hosts --replace --out=run $small --epochs=1 --secret-file=key
wait_until grep -q 'waits for 2 workers; all that they send is encrypted' ps.err
start_worker 0 $small --epochs=1
ends 5 w0
says w0 "127.0.0.1:$port: expects encryption, with the key of its --secret-file or with certificates\$"
wait_until grep \
    -Eq 'refused: 127.0.0.1:[0-9]+: speaks without encryption, expected the key that is used here' ps.err
start_worker 0 $small --epochs=1 --secret-file=other
ends 5 w0
says w0 "127.0.0.1:$port: does not accept the key that is used here"
wait_until grep -Eq 'refused: 127.0.0.1:[0-9]+: does not hold the key that is used here' ps.err
start strangers python3 -c '
import socket, ssl, sys, time
def dial():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
kept = [dial() for _ in range(80)]                  # who say nothing
for text in b"GET / HTTP/1.0\r\n\r\n", b"TRNR" + bytes(200), bytes(5000):
    kept.append(dial())
    kept[-1].sendall(text)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
# An older protocol; and one with certificates, of which there are none.
for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
    context.minimum_version = context.maximum_version = version
    try:
        context.wrap_socket(dial())
        print("let in", version)
    except (ssl.SSLError, OSError):
        pass
print("done", flush=True)
time.sleep(60)' "$port"
wait_until grep -q "^done" strangers.out
! grep 'let in' strangers.out || fail "a stranger was let in"
for w in 0 1; do start_worker $w $small --epochs=1 --secret-file=key; done
ends 0 ps w0 w1
same_results ps w0 w1
signal 9 strangers
finish strangers
alone "beside strangers"

# --- a parameter server in clear, and a worker with a key ---
new_cluster 1 1
start ps "$TRAINER" --job=ps --task=0 $hosts --replace --out=run $small --epochs=1
wait_until grep -q 'waits for 1 worker$' ps.err
start_worker 0 $small --epochs=1 --secret-file=key
ends 5 w0
says w0 "127.0.0.1:$port: speaks without encryption, expected the key that is used here"
signal 9 ps
finish ps

# --- certificates: each process its own, of one CA; the three options belong together, and a key does not ---
new_cluster 1 2
job="--job=ps --task=0 $hosts --out=elsewhere"
refused_with 2 '--tls-cert without --tls-key: expected --tls-cert, --tls-key and --tls-ca' $job \
    --tls-cert=a.pem
refused_with 2 '--tls-key without --tls-cert: expected --tls-cert, --tls-key and --tls-ca' $job \
    --tls-key=a.key --tls-ca=ca.pem
refused_with 2 '--tls-cert and --secret-file: expected certificates or a key, not both' $job --tls-cert=a \
    --tls-key=b --tls-ca=c --secret-file=key
TRAINER_SECRET=$before refused_with 2 \
    '--tls-cert and TRAINER_SECRET: expected certificates or a key, not both' $job --tls-cert=a --tls-key=b \
    --tls-ca=c
refused_with 3 'c: No such file or directory' $job --tls-cert=a --tls-key=b --tls-ca=c
if command -v openssl >/dev/null; then
    certify() { # name, CA
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout $1.key \
            -out $1.csr &&
            openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -days 30 -out $1.pem
    }
    for ca in ca stranger; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=$ca" \
            -keyout $ca.key -out $ca.pem
    done 2>openssl.err
    {
        certify a ca && certify b ca && certify c ca && certify s stranger &&
            cat ca.pem stranger.pem >both.pem
    } 2>>openssl.err ||
        fail "openssl: $(cat openssl.err)"
    certified() { echo "--tls-cert=$1.pem --tls-key=$1.key --tls-ca=${2:-ca}.pem"; }
    chmod 644 c.key
    refused_with 3 \
        'c.key: others can read this key \(mode 644\): expected mode 600, as after chmod 600 c.key' \
        $job $(certified c)
    chmod 600 c.key
    refused_with 3 's.pem: the certificate is not signed by the CA that is used here \(ca.pem\)' \
        $job $(certified s)
    rm -rf run
    start ps "$TRAINER" --job=ps --task=0 ${hosts/127.0.0.1/0.0.0.0} --replace --out=run $small \
        --epochs=1 $(certified a)
    wait_until grep -q 'waits for 2 workers; all that they send is encrypted' ps.err
    start_worker 0 $small --epochs=1 $(certified s both)
    ends 5 w0
    says w0 "127.0.0.1:$port: says that another CA has signed the certificate of this side"
    wait_until grep \
        -Eq 'refused: 127.0.0.1:[0-9]+: its certificate is not signed by the CA that is used here' ps.err
    start_worker 0 $small --epochs=1 --secret-file=key
    ends 5 w0
    says w0 "127.0.0.1:$port: shows a certificate, expected the key that is used here"
    wait_until grep \
        -Eq 'refused: 127.0.0.1:[0-9]+: has a key, expected a certificate of the CA that is used here ' ps.err
    start_worker 0 $small --epochs=1
    ends 5 w0
    says w0 "127.0.0.1:$port: expects encryption"
    start_worker 0 $small --epochs=1 $(certified b)
    start_worker 1 $small --epochs=1 $(certified c)
    ends 0 ps w0 w1
    same_results ps w0 w1
    alone "certificates"
else
    echo "certificates: no openssl command here"
fi

# --- other machines ---
hosts="--ps-hosts=0.0.0.0:$port --worker-hosts=127.0.0.1:1"
refused_with 2 \
    "0.0.0.0:$port is not an address of this machine alone: expected --secret-file=FILE, \
with the same key in all processes \\(trainer keygen FILE makes one\\), certificates \\(--tls-cert\\), \
or --insecure" \
    --quiet --job=ps --task=0 $hosts --out=elsewhere
refused_with 2 "192.0.2.1:2222 is not an address of this machine alone: expected .*" \
    --job=worker --task=0 --ps-hosts=192.0.2.1:2222 --worker-hosts=127.0.0.1:1 --quiet
for how in --insecure --secret-file=key; do
    new_cluster 1 1
    rm -rf run
    start ps "$TRAINER" --job=ps --task=0 ${hosts/127.0.0.1/0.0.0.0} --replace --out=run $small \
        --epochs=1 $how
    start_worker 0 $small $how
    ends 0 ps w0
    same_results ps w0
done

# --- in clear, who comes from elsewhere learns nothing of the settings; they are in the log here ---
own=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m 1 -E '^[0-9.]+$') || own=''
if [ -n "$own" ]; then
    new_cluster 1 1
    start ps "$TRAINER" --job=ps --task=0 ${hosts/127.0.0.1/0.0.0.0} --replace --out=run $small --epochs=1 \
        --insecure
    hosts=${hosts/127.0.0.1/$own}
    start_worker 0 --batch=8 --insecure
    ends 5 w0
    says w0 "the parameter server $own:$port refuses: its log says why\$"
    wait_until grep -q "refused: worker 0 ($own:[0-9]*) has --batch 8, the parameter server has 16" ps.err
    start_worker 0 --insecure
    ends 0 ps w0
fi

# --- in one process ---
run 0 --quiet --dataset=iris --epochs=1 --secret-file=nowhere --out=lone
grep -Fqx 'trainer: --secret-file does nothing in one process, which sends nothing' err ||
    fail "one process with a key: $(cat err)"
# --- a key that root hands to a group, as Kubernetes mounts a Secret: its members may use it; nobody may
# whose key all can read ---
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 711 "$scratch"
    "$TRAINER" keygen handed.key >/dev/null && chgrp 65534 handed.key
    for mode in 440:5 640:5 444:3 460:3; do # nobody is there: 5; refused: 3
        chmod "${mode%:*}" handed.key
        code=0
        setpriv --reuid=65534 --regid=65534 --clear-groups "$TRAINER" probe 127.0.0.1:1 \
            --secret-file=handed.key --timeout=0.1 >out 2>err || code=$?
        [ "$code" -eq "${mode#*:}" ] ||
            fail "a key of root's with mode ${mode%:*}: exit code $code: $(cat err)"
    done
fi

[ $failures -eq 0 ]
