#!/bin/bash
# tests/install-missing on machines of every kind: root or not, with sudo or not, everything there or nothing,
# package lists that are old, packages that do not exist. The machine is made up: a PATH with stand-ins for
# apt-get, sudo, id and the compiler, whose headers are the files in has/.
set -u
script=$(cd "$(dirname "$0")/.." && pwd)/install-missing
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export STATE=$scratch CERTIFICATES=$scratch/has/ca-certificates
unset CC ONEDNN CURL STB TURBO PROTOBUF PNG DEBIAN_FRONTEND
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

mkdir tools || exit 1
for tool in bash sh env basename mktemp rm sed grep tail head cat touch tr mkdir setsid; do
    ln -s "$(command -v $tool)" tools/$tool || exit 1
done

# Each package brings a header, a command or a file.
brings='make=make binutils=ar gcc=gcc libc6-dev=stdio.h zlib1g-dev=zlib.h libdnnl-dev=oneapi_dnnl_dnnl.h
    libcurl4-openssl-dev=curl_curl.h libssl-dev=openssl_evp.h ca-certificates=ca-certificates
    libstb-dev=stb_stb_image.h libturbojpeg0-dev=turbojpeg.h
    libprotobuf-c-dev=protobuf-c_protobuf-c.h protobuf-c-compiler=protoc-c libpng-dev=png.h
    libhdf5-dev=hdf5_serial_hdf5.h python3=python3'
export brings

make_tool() { # name: its body from standard input
    { echo "#!$(command -v bash)" && cat; } >"fakes/$1" && chmod +x "fakes/$1"
}

# A machine: who one is, what is there already, which packages can be had now and which after apt-get update.
machine() { # root|user|nosudo|noapt, "there", "now", "later"
    rm -rf fakes has bin calls now later && mkdir fakes has bin
    echo "$3" >now && echo "$4" >later
    : >calls
    make_tool apt-get <<'END'
echo "$*" >>"$STATE/calls"
if [ -e "$STATE/needs-root" ] && [ -z "${AS_ROOT:-}" ]; then echo "E: are you root?"; exit 100; fi
if [ "$1" = update ]; then cat "$STATE/later" >>"$STATE/now"; exit 0; fi
[ "${DEBIAN_FRONTEND:-}" = noninteractive ] || { echo "E: asks"; exit 1; }
packages=
for word in "${@:2}"; do case $word in -* | DPkg*) ;; *) packages+=" $word" ;; esac; done
for package in $packages; do
    grep -qw -e "$package" "$STATE/now" ||
        { echo "E: Unable to locate package $package"; echo "a last line"; exit 100; }
done
for package in $packages; do
    for pair in $brings; do
        [ "${pair%%=*}" = "$package" ] || continue
        case ${pair#*=} in
        *.h | ca-*) touch "$STATE/has/${pair#*=}" ;;
        *) "$STATE/appear" "${pair#*=}" ;;
        esac
    done
done
END
    # A command that appears: the compiler answers for has/, the others do nothing.
    cat >appear <<END
#!$(command -v bash)
{
    echo '#!$(command -v bash)'
    echo 'read -r line; line=\${line#*<}; line=\${line%>*}; [ -e "\$STATE/has/\${line//\\//_}" ]'
} >"\$STATE/bin/\$1"
"$(command -v chmod)" +x "\$STATE/bin/\$1"
END
    chmod +x appear
    rm -f needs-root
    if [ "$1" = root ] || [ "$1" = noapt ]; then
        make_tool id <<<'echo 0'
    else
        make_tool id <<<'echo 1000'
        touch needs-root
    fi
    if [ "$1" = user ]; then
        make_tool sudo <<<'[ "$1" = -n ] && shift; [ "$1" = true ] && exit 0; AS_ROOT=1 exec "$@"'
    fi
    if [ "$1" = locked ]; then make_tool sudo <<<'exit 1'; fi
    if [ "$1" = noapt ]; then rm fakes/apt-get; fi
    for thing in $2; do
        case $thing in *.h | ca-*) touch "has/$thing" ;; *) ./appear "$thing" ;; esac
    done
}

run() { # expected code, pattern of standard output, of standard error (each the whole of it), then arguments
    local want=$1 said=$2 complained=$3 code
    shift 3
    # Away from any terminal.
    PATH=$scratch/fakes:$scratch/bin:$scratch/tools setsid sh "$script" "$@" >out 2>err </dev/null
    code=$?
    [ $code -eq "$want" ] || fail "$label: exit code $code, expected $want: $(cat out err)"
    [[ $(tr '\n' '|' <out) =~ ^($said)$ ]] || fail "$label: said: $(cat out); expected: $said"
    [[ $(tr '\n' '|' <err) =~ ^($complained)$ ]] ||
        fail "$label: complained: $(cat err); expected: $complained"
}

calls() { # expected commands of apt-get, by their first word and packages
    local found
    found=$(sed -E 's/ -[^ ]+( [A-Za-z]+::[^ ]+)?//g' calls)
    [ "$found" = "$1" ] || fail "$label: apt-get: $found; expected: $1"
}
all_there='make ar gcc stdio.h zlib.h oneapi_dnnl_dnnl.h curl_curl.h openssl_evp.h ca-certificates '\
'stb_stb_image.h turbojpeg.h protobuf-c_protobuf-c.h protoc-c png.h hdf5_serial_hdf5.h'
must='make binutils gcc libc6-dev zlib1g-dev'
may='libdnnl-dev libcurl4-openssl-dev libssl-dev ca-certificates libstb-dev libturbojpeg0-dev '\
'libprotobuf-c-dev protobuf-c-compiler libpng-dev libhdf5-dev'

label="all is there"
machine root "$all_there" "" ""
run 0 '' ''
calls ''

label="nothing is there, lists are fresh"
machine root "" "$must $may" ""
run 0 "installing $must $may\\|" ''
calls "install $must $may"

label="nothing is there, no lists"
machine root "" "" "$must $may"
run 0 "installing $must $may\\|" ''
calls "install $must $may
update
install $must $may"

label="a user with sudo"
machine user "" "" "$must $may"
run 0 "installing $must $may\\|" ''

label="no oneDNN, no stb, no libjpeg-turbo, no libpng"
machine root "make ar gcc stdio.h" "" \
    "$must libcurl4-openssl-dev libssl-dev ca-certificates libprotobuf-c-dev protobuf-c-compiler libhdf5-dev"
run 0 'installing zlib1g-dev [^|]*\|libdnnl-dev is not here and cannot be installed; '\
'building without oneDNN, slower\|libstb-dev is not here and cannot be installed; '\
'building without trainer predict of pictures and --dataset=pictures\|libturbojpeg0-dev is not here and '\
'cannot be installed; JPEGs are decoded by stb_image, slower\|libpng-dev is not here and cannot be '\
'installed; trainer show draws in the terminal only\|' ''
for header in zlib.h curl_curl.h openssl_evp.h ca-certificates; do
    [ -e has/$header ] || fail "$label: $header did not come"
done
[ "$(grep -c '^update' calls)" -eq 1 ] || fail "$label: $(grep -c '^update' calls) updates"

label="the compiler cannot be had"
machine root "make ar stdio.h zlib.h" "" "$may"
run 1 'installing [^|]*\|' \
    'install-missing: cannot install gcc libc6-dev zlib1g-dev: E: Unable to locate package gcc\|'

label="no sudo, the compiler is missing"
machine nosudo "make ar" "$must $may" ""
run 1 '' 'install-missing: cannot install gcc libc6-dev zlib1g-dev: this needs root, '\
'and there is no sudo here; install by hand\|'
calls ''

label="sudo asks, and there is no terminal"
machine locked "make ar" "$must $may" ""
run 1 '' 'install-missing: cannot install gcc [^|]*: this needs root, and sudo asks for a password; '\
'install by hand\|'
calls ''

label="no sudo, only what may be missing is"
machine nosudo "${all_there/oneapi_dnnl_dnnl.h/}" "$must $may" ""
run 0 'libdnnl-dev is not here and cannot be installed; building without oneDNN, slower\|' ''
calls ''

label="no apt-get"
machine noapt "make ar gcc stdio.h" "" ""
run 1 '' 'install-missing: cannot install zlib1g-dev: there is no apt-get here; install by hand\|'

label="left out on purpose"
machine root "make ar gcc stdio.h zlib.h" "$must $may" ""
ONEDNN=0 CURL=0 TLS=0 STB=0 PROTOBUF=0 PNG=0 HDF5=0 run 0 '' ''
calls ''

label="one package"
machine root "$all_there" python3 ""
run 0 'installing python3\|' '' python3=python3

label="another compiler, a further package"
machine root "$all_there" "$must $may clang python3" ""
CC=clang run 0 'installing clang libc6-dev [^|]*python3 [^|]*\|' '' python3=python3 gcc=gcc-no

# --- who installs by hand is told the same packages: README.md's line of them, and python3, which the tests
# need ---
listed=$(sed -n '/^apt-get install /,/[^\\]$/p' "$(dirname "$script")/../README.md" | tr -s ' \\' '\n' |
    sed '1,2d' | sort)
expected=$(tr ' ' '\n' <<<"$must $may python3" | sort)
[ "$listed" = "$expected" ] || fail "README.md's packages: $(comm -3 <(echo "$listed") <(echo "$expected"))"

[ $failures -eq 0 ]
