# trainer: `make` leaves the program at ./trainer; `make demo` and `make check` install what is missing first.
#
#   make                 build                          make CC=clang ONEDNN=0   with clang, without oneDNN
#   make check           build and pass every test      make SANITIZE=thread tests
#                                                        address | undefined | thread
#   make demo            train on the embedded digits   make B=/tmp/b               build folder
#   make fuzz            mutated files, frames and options, some seconds each (clang)
#   make verify          the long form of all checks, some hours
#   make mutations       puts the bugs of tests/mutations in, one by one, and sees a test fail on each;
#                        mutations-quick: some of them
#   make CUDA=0          without GPUs (auto: with them where nvcc, cuBLASLt and cuDNN are); CUDA_ARCHS=all
#                        for every GPU
#   make CUDA=standin B=build/standin gpu-tests      GPUs that a stand-in of tests/ plays, on any machine
#                        with g++
#   make install         program, library, manual page and completions into PREFIX=/usr/local, below DESTDIR
#                        if set; make uninstall removes them; make library: libtrainer.so and libtrainer.a
#                        alone
#   make gpu-facts REPORT=FOLDER   on a machine with a GPU: all that can be found out there in LIMIT_S=560
#                        seconds
#
# A plug-in is one file: the names in strategies/ models/ datasets/ src/store/{optimizers,schedules}/ and
# src/outputs/ become tables here.

CC = gcc
SANITIZE =
WERROR = 0
MARCH = native
B = build$(if $(SANITIZE),/$(SANITIZE))
PROGRAM = $(if $(filter build,$(B)),trainer,$(B)/trainer)

# oneDNN 2.x or 3.x is used when its header is there; ONEDNN=0 builds without it, on the plain
# reference kernels.
ONEDNN := $(shell printf '\043include <oneapi/dnnl/dnnl.h>\n\043if DNNL_VERSION_MAJOR < 2 || \
    DNNL_VERSION_MAJOR > 3\n\043error\n\043endif\n' | \
    $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

# zlib's header may be missing where the library is not, as on a machine with little more than a compiler:
# then what is used of it is declared in src/base/zlib. ZLIB=0: so also where the header is here.
ZLIB := $(shell printf '\043include <zlib.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

# What is optional beside it: libcurl with OpenSSL for `trainer fetch`; CURL=0: it only says what to download
# and where to put it.
CURL := $(shell printf '\043include <curl/curl.h>\n\043include <openssl/evp.h>\n' | \
    $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

# OpenSSL encrypts what the processes of a cluster send each other; TLS=0: they speak in clear, on one machine
# or with --insecure.
TLS := $(shell \
    printf '\043include <openssl/ssl.h>\n\043if OPENSSL_VERSION_MAJOR < 3\n\043error\n\043endif\n' | \
    $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

# stb_image reads the pictures of `trainer predict` and of --dataset=pictures; STB=0 builds without.
STB := $(shell printf '\043include <stb/stb_image.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

# libjpeg-turbo decodes JPEGs faster than stb_image does; TURBO=0 builds without.
TURBO := $(if $(filter 0,$(STB)),0,$(shell \
    printf '\043include <turbojpeg.h>\n\043ifndef TJFLAG_STOPONWARNING\n\043error\n\043endif\n' | \
    $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0))

# libhdf5 writes the models of Keras; HDF5=0 builds without `trainer export FILE.h5`. Debian has it in folders
# of its own. It is not linked but loaded when such a file is written: HDF5_FILE is the name that a program
# linked with it would ask for.
HDF5_INCLUDE := $(firstword $(wildcard /usr/include/hdf5/serial))
HDF5 := $(shell printf '\043include <hdf5.h>\n' | \
    $(CC) $(HDF5_INCLUDE:%=-I%) -E - >/dev/null 2>&1 && echo 1 || echo 0)
HDF5_LINKED = libhdf5$(if $(HDF5_INCLUDE),_serial).so
ifneq ($(HDF5),0)
    HDF5_FILE := $(or $(shell readelf -d "$$($(CC) -print-file-name=$(HDF5_LINKED))" 2>/dev/null | \
        sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p'),$(HDF5_LINKED))
endif
# UCX moves what clusters send with --link=ucx; UCX=0 builds without. It is not linked but loaded when it is
# asked for.
UCX := $(shell printf '\043include <ucp/api/ucp.h>\n\043if UCP_API_MAJOR != 1 || \
    UCP_API_MINOR < 13\n\043error\n\043endif\n' | \
    $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)
# protobuf-c, its library and its compiler, encodes what TensorBoard reads; PROTOBUF=0 builds
# without --outputs=tensorboard.
PROTOBUF := $(shell printf '\043include <protobuf-c/protobuf-c.h>\n' | \
    $(CC) -E - >/dev/null 2>&1 && command -v protoc-c >/dev/null && echo 1 || echo 0)

# libpng writes the pictures of `trainer show`; PNG=0: it shows them in the terminal only.
PNG := $(shell printf '\043include <png.h>\n\043ifndef PNG_IMAGE_VERSION\n\043error\n\043endif\n' | \
    $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

# GPUs: CUDA=1 where nvcc is on the path and the libraries are found, in the toolkit or in the nvidia packages
# of PYTHON; no driver is needed to build. The sanitizers see the backend with CUDA=standin, where a runtime
# of tests/standin takes the place of CUDA's. The runtime is linked in; cuBLASLt, cuDNN and NCCL, which is
# used where it is found, are loaded when a GPU first needs them, from where the system has them or from
# CUDA_LOADED, folders with ':' between them (cuda/libraries.h).
CUDA = auto
CUDA_ARCHS = native
PYTHON = python3
SYSTEM_FOLDERS = /usr /usr/local
CXX = $(if $(findstring clang,$(CC)),clang++,g++)
ifneq ($(filter auto 1,$(CUDA)),)
    NVCC := $(if $(and $(filter auto,$(CUDA)),$(SANITIZE)),,$(firstword $(shell command -v nvcc) \
        $(wildcard /usr/local/cuda/bin/nvcc)))
    ifneq ($(NVCC),)
        CUDA_HOME := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
        CUDA_FOLDERS := $(CUDA_HOME) $(wildcard $(CUDA_HOME)/targets/*-linux) $(SYSTEM_FOLDERS)
        # The first folder that has a header, and the first file that is a library, whatever its version.
        cuda_header = $(patsubst %/,%,$(dir $(firstword $(wildcard $(CUDA_FOLDERS:%=%/include/$(1))))))
        cuda_library = $(firstword $(wildcard $(foreach f,$(CUDA_FOLDERS),$(foreach l,lib64 lib \
            lib/$(shell uname -m)-linux-gnu,$(f)/$(l)/$(1) $(f)/$(l)/$(1).*))))
        cuda_headers = $(foreach h,cuda_runtime.h cublasLt.h cudnn.h,$(call cuda_header,$(h)))
        cuda_libraries = $(foreach l,libcudart_static.a libcublasLt.so libcudnn.so,$(call cuda_library,$(l)))
        nccl = $(call cuda_header,nccl.h) $(call cuda_library,libnccl.so)
        ifneq ($(words $(cuda_headers)) $(words $(cuda_libraries)) $(words $(nccl)),3 3 2)
            CUDA_FOLDERS += $(wildcard $(addsuffix /*,$(shell $(PYTHON) -c \
                'import nvidia; print(*nvidia.__path__)' 2>/dev/null)))
        endif
        CUDA_HEADERS := $(cuda_headers)
        CUDA_LIBRARIES := $(cuda_libraries)
        NCCL_FOUND := $(nccl)
    endif
    override CUDA := $(if $(filter auto,$(CUDA)),$(if $(and $(filter 3,$(words $(CUDA_HEADERS))), \
        $(filter 3,$(words $(CUDA_LIBRARIES)))),1,0),1)
endif
ifeq ($(CUDA),1)
    ifneq ($(words $(CUDA_HEADERS)) $(words $(CUDA_LIBRARIES)),3 3)
        $(error CUDA=1: found nvcc: '$(NVCC)', headers in: '$(CUDA_HEADERS)', \
            libraries: '$(CUDA_LIBRARIES)'; expected cudart, cuBLASLt and cuDNN of each)
    endif
    # Which GPUs the kernels are compiled for: those that are here, as the driver's library says, or
    # nvidia-smi; for none, the oldest that has bf16, as PTX that the driver of any later one compiles; or all
    # but those before 8.0, which have no bf16, and those that run what was compiled for the one before. One
    # that this nvcc does not know yet gets PTX of the newest before it.
    arch_list := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
    ifeq ($(CUDA_ARCHS),native)
        archs_here := $(or $(shell $(PYTHON) cuda/capabilities.py 2>/dev/null), \
            $(sort $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null))))
        archs := $(filter $(archs_here),$(arch_list))
        newest_before = $(lastword $(shell for a in $(filter-out 5% 6% 7%,$(arch_list)); do \
            [ $$a -le $(1) ] && echo $$a; done | sort -n))
        archs_ptx := $(if $(archs),,$(foreach a,$(firstword $(archs_here)),$(call newest_before,$(a))))
    else ifeq ($(CUDA_ARCHS),all)
        archs := $(filter-out 5% 6% 7% 87 88 121,$(arch_list))
    else
        archs := $(CUDA_ARCHS)
    endif
    ptx := $(or $(lastword $(archs)),$(archs_ptx),80)
    # Said once, before the first file of GPU code is compiled.
    ARCHS_SAID = GPU code for $(if $(archs),$(archs:%=sm_%) and )PTX \
        $(ptx)$(if $(filter native,$(CUDA_ARCHS)),$(if $(archs),, \
        ($(if $(archs_here),this nvcc has none of $(archs_here:%=sm_%),no GPU here); \
        the driver compiles it when the program starts)))
    NVCC_ARCHS := $(foreach a,$(archs),-gencode arch=compute_$(a),code=sm_$(a)) \
        -gencode arch=compute_$(ptx),code=compute_$(ptx)
    NCCL := $(if $(filter 2,$(words $(NCCL_FOUND))),1,0)
    NCCL_FOUND := $(if $(filter 1,$(NCCL)),$(NCCL_FOUND))
    # /usr/include is looked into anyhow, and has to be looked into last.
    CUDA_INCLUDES := $(addprefix -isystem ,$(filter-out /usr/include,$(sort $(CUDA_HEADERS) \
        $(firstword $(NCCL_FOUND)))))
    # --fmad=false: device code rounds as the same lines do on the CPU; fmaf is used where it is meant.
    COMPILE_CU = $(NVCC) -std=c++17 -O3 -g -lineinfo --fmad=false $(NVCC_ARCHS) -I$(B)/tables \
                 $(CUDA_INCLUDES) -Xcompiler -Wall,-Wextra,-fPIC \
                 $(if $(filter 1,$(WERROR)),-Werror all-warnings) -MMD -MP
    CUDA_LIBS = $(filter %.a,$(CUDA_LIBRARIES)) -lstdc++ -ldl -lrt
    empty :=
    CUDA_LOADED := $(subst $(empty) $(empty),:,$(sort $(patsubst %/,%,$(dir $(filter-out \
        %.a,$(CUDA_LIBRARIES) $(lastword $(NCCL_FOUND)))))))
endif
ifeq ($(CUDA),standin)
    CUDA_INCLUDES = -Itests/standin
    COMPILE_CU = $(CXX) -std=c++17 -D_GNU_SOURCE -Wall -Wextra \
                 $(if $(findstring clang,$(CC)),-Wshadow,-Wshadow=local) $(if $(filter 1,$(WERROR)),-Werror) \
                 $(OPTIMIZE) -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC $(CFLAGS) \
                 $(SANITIZER) -I$(B)/tables $(CUDA_INCLUDES) -MMD -MP -x c++
    # The stand-in's libraries are loaded, too, from beside the program and the tests, and call the
    # stand-in's runtime. (An older rpath, because it counts for a sanitizer's dlopen, too.) The folder of
    # the build is tests/cuda/missing.sh's.
    CUDA_LIBS = -rdynamic \
      -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/tests/standin:$$ORIGIN/../standin:$$ORIGIN/../tests/standin' \
      -lstdc++ -ldl
    CUDA_LOADED = $(abspath $(B))/tests/loaded
    STANDIN_LIBRARY_SOURCES = tests/standin/blas.cc tests/standin/dnn.cc tests/standin/collective.cc
    STANDIN_LIBRARIES = $(foreach l,cublasLt cudnn nccl,$(B)/tests/standin/lib$(l).so.0)
    NCCL := 1
endif

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
           $(if $(filter 1,$(WERROR)),-Werror)
# What computes, moves bytes or shares steps is compiled for speed, and all the rest in half the time.
optimize = $(if $(SANITIZE),-O$(2) -fno-omit-frame-pointer,-O$(1) $(if $(MARCH),-march=$(MARCH)))
OPTIMIZE = $(call optimize,1,0)
OPTIMIZE_LOOPS = $(call optimize,3,1)
LOOPS = cuda strategies models \
        $(addprefix src/,base bridge cpu data device engine formats graph infer program store world)
SANITIZER = $(if $(SANITIZE),-fsanitize=$(SANITIZE) \
            $(if $(findstring undefined,$(SANITIZE)),-fno-sanitize-recover=all))
CFLAGS = $(if $(SANITIZE),-g1,-g)
LDFLAGS =
# The same objects make the program and the library, of which only the functions of trainer.h can be seen
# from outside.
FOR_LIBRARY = -fPIC -fvisibility=hidden
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE $(WARNINGS) $(OPTIMIZE) -ffp-contract=off -fno-math-errno \
             -fno-trapping-math $(FOR_LIBRARY) $(CFLAGS)
VERSION = 0.1.0
DEFINES = -DTRAINER_ONEDNN=$(ONEDNN) -DTRAINER_CURL=$(CURL) -DTRAINER_TLS=$(TLS) -DTRAINER_UCX=$(UCX) \
          -DTRAINER_STB=$(STB) -DTRAINER_TURBO=$(TURBO) -DTRAINER_PROTOBUF=$(PROTOBUF) -DTRAINER_PNG=$(PNG) \
          -DTRAINER_HDF5=$(HDF5) $(if $(HDF5_FILE),-DTRAINER_HDF5_FILE='"$(HDF5_FILE)"') \
          -DTRAINER_CUDA=$(if $(filter 0,$(CUDA)),0,1) $(if $(NCCL),-DTRAINER_NCCL=$(NCCL)) \
          -DTRAINER_VERSION='"$(VERSION)"' $(if $(filter 0,$(ZLIB)),-Isrc/base/zlib)
LIBS = $(if $(filter 1,$(ONEDNN)),-ldnnl -lgomp) $(if $(filter 1,$(CURL)),-lcurl) \
       $(if $(filter 1,$(TLS)),-lssl) $(if $(filter 1,$(CURL) $(TLS)),-lcrypto) \
       $(if $(filter 1,$(PROTOBUF)),-lprotobuf-c) $(if $(filter 1,$(TURBO)),-lturbojpeg) \
       $(if $(filter 1,$(PNG)),-lpng) $(if $(filter 1,$(HDF5) $(UCX)),-ldl) \
       $(CUDA_LIBS) $(if $(filter 0,$(ZLIB)),-l:libz.so.1,-lz) -lm -pthread
LINK = $(if $(filter 0,$(CUDA)),$(CC),$(CXX)) $(SANITIZER) $(LDFLAGS)

# --- plug-ins: folder -> table of descriptors ---
name_of = $(subst -,_,$(basename $(notdir $(1))))
PLUGIN_FOLDERS = strategies models datasets src/store/optimizers src/store/schedules \
                 src/commands src/outputs src/exports src/imports/readers src/bridge/compressors
kind_strategies = strategy
kind_models = model
kind_datasets = dataset
kind_optimizers = optimizer
kind_schedules = schedule
kind_commands = command
kind_outputs = output
kind_exports = format
kind_readers = reader
kind_compressors = compressor
struct_strategies = struct strategy
struct_models = struct model
struct_datasets = struct dataset_plugin
struct_optimizers = struct optimizer
struct_schedules = struct schedule
struct_commands = struct command
struct_outputs = struct output
struct_exports = struct format
struct_readers = struct reader
struct_compressors = struct compressor
header_strategies = src/store/strategy.h
header_models = src/graph/model.h
header_datasets = src/data/dataset.h
header_optimizers = src/store/optimizer.h
header_schedules = src/store/schedule.h
header_commands = src/commands/command.h
header_outputs = src/record/output.h
header_exports = src/infer/export.h
header_readers = src/graph/network_file.h
header_compressors = src/bridge/compressor.h
# Files that need what is not here.
LEFT_OUT = $(if $(filter 0,$(ONEDNN)),src/cpu/onednn%.c) \
           $(if $(filter 0,$(CURL)),src/data/fetch.c src/data/sha256.c src/world/download.c) \
           $(if $(filter 0,$(TLS)),src/world/tls.c src/world/certificates.c) \
           $(if $(filter 0,$(PROTOBUF)),src/formats/events.c src/formats/graph_def.c src/formats/onnx_file.c \
             src/tensorboard/%.c tests/formats/events.c \
             src/imports/onnx_%.c tests/imports/onnx.c) \
           $(if $(filter 0,$(UCX)),src/world/ucx.c src/world/ucx_context.c src/world/ucx_inbox.c \
             src/world/ucx_library.c,src/world/without_ucx.c) \
           $(if $(filter 0,$(HDF5)),src/formats/hdf5.c src/formats/hdf5_library.c)
plugins_of = $(filter-out $(LEFT_OUT),$(wildcard $(1)/*.c))
TABLES = $(foreach f,$(PLUGIN_FOLDERS),$(B)/tables/$(notdir $(f)).c)

SOURCES = $(filter-out $(LEFT_OUT),$(wildcard src/*/*.c) \
            $(foreach f,strategies models datasets src/store/optimizers src/store/schedules \
              src/imports/readers src/bridge/compressors,$(wildcard $(f)/*.c)))
CUDA_SOURCES = $(if $(filter 0,$(CUDA)),,$(wildcard cuda/*.c cuda/*.cu)) \
               $(if $(filter standin,$(CUDA)),$(filter-out \
                 $(STANDIN_LIBRARY_SOURCES),$(wildcard tests/standin/*.cc)))
CUDA_OBJECTS = $(patsubst %.c,$(B)/%.o,$(CUDA_SOURCES:%.cu=$(B)/%.cu.o))
CUDA_OBJECTS := $(CUDA_OBJECTS:%.cc=$(B)/%.o)
# What protobuf-c makes of src/formats/*.proto.
PROTOCOLS = $(if $(filter 1,$(PROTOBUF)),$(patsubst \
            src/formats/%.proto,$(B)/proto/%.pb-c,$(wildcard src/formats/*.proto)))
OBJECTS = $(SOURCES:%.c=$(B)/%.o) $(CUDA_OBJECTS) $(PROTOCOLS:=.o) $(TABLES:.c=.o)
# tests/cuda/*.c need the backend; tests/cuda/host.c the stand-in.
TEST_SOURCES = $(filter-out $(LEFT_OUT) \
    $(if $(filter standin,$(CUDA)),,tests/cuda/$(if $(filter 1,$(CUDA)),host.c,%)),$(wildcard tests/*/*.c))
TESTS = $(filter-out $(TEST_WITHOUT:%=$(B)/tests/%),$(TEST_SOURCES:tests/%.c=$(B)/tests/%))
BENCHES = $(B)/bench/step $(B)/bench/input $(B)/bench/exchange $(B)/bench/wire $(B)/bench/predict
GPU_BENCHES = $(B)/bench/gpu_latency $(B)/bench/gpu_operations $(B)/bench/gpu_exchange

.PHONY: all library examples tests verify mutations mutations-quick gpu-tests gpu-facts bench \
        faults real-faults fuzz fuzz-each check demo install-missing install uninstall clean format
all: $(PROGRAM)

$(PROGRAM): $(B)/src/main.o $(B)/libtrainer.a
	@echo '  LINK $@'
	@$(LINK) -o $@ $^ $(LIBS)

$(B)/libtrainer.a: $(OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

# --- the library: all of the program but main.c, with the functions of trainer.h alone to be seen
# (src/library/symbols.map). The shared one's soname changes when a program that was linked with it could not
# run with the new one. The static one is a single object, so that names of ours cannot clash with those of a
# program ---
LIBRARY_NAME = libtrainer.so
LIBRARY_SONAME = $(LIBRARY_NAME).0
LIBRARY_FILE = $(LIBRARY_NAME).$(VERSION)
LIBRARY = $(B)/library
SYMBOLS = src/library/symbols.map
library: $(LIBRARY)/$(LIBRARY_NAME) $(LIBRARY)/libtrainer.a

$(LIBRARY)/$(LIBRARY_FILE): $(OBJECTS) $(SYMBOLS)
	@mkdir -p $(@D)
	@echo '  LINK $@'
	@$(LINK) -shared -Wl,-soname,$(LIBRARY_SONAME) -Wl,--version-script=$(SYMBOLS) -o $@ $(OBJECTS) $(LIBS)
$(LIBRARY)/$(LIBRARY_SONAME): $(LIBRARY)/$(LIBRARY_FILE)
	@ln -sf $(<F) $@
$(LIBRARY)/$(LIBRARY_NAME): $(LIBRARY)/$(LIBRARY_SONAME)
	@ln -sf $(<F) $@
$(LIBRARY)/libtrainer.a: $(OBJECTS) $(SYMBOLS)
	@mkdir -p $(@D)
	@echo '  LINK $@'
	@sed -n 's/^ *\(trainer_[a-z_0-9]*\);.*/\1/p' $(SYMBOLS) >$(@D)/symbols
	@$(LD) -r -o $(@D)/trainer.o $(OBJECTS) && objcopy --keep-global-symbols=$(@D)/symbols $(@D)/trainer.o
	@rm -f $@ && ar rcs $@ $(@D)/trainer.o && rm $(@D)/trainer.o

# --- examples of its use: each a program of one page ---
EXAMPLES = $(patsubst %.c,$(B)/%,$(wildcard examples/*.c))
examples: $(EXAMPLES)
$(B)/examples/%: examples/%.c src/library/trainer.h $(LIBRARY)/$(LIBRARY_NAME) $(B)/flags
	@mkdir -p $(@D)
	@echo '  LINK $@'
	@$(CC) $(filter-out $(FOR_LIBRARY),$(ALL_CFLAGS)) $(SANITIZER) -Isrc/library -c -o $@.o $<
	@$(LINK) -o $@ $@.o $(LIBRARY)/$(LIBRARY_NAME) -Wl,-rpath,'$$ORIGIN/../library' -lm -pthread

# What the flags are goes into a file, so that changing them builds anew.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(SANITIZER) $(DEFINES)' | cmp -s - $@ || \
	 echo '$(CC) $(ALL_CFLAGS) $(SANITIZER) $(DEFINES)' > $@
$(B)/flags.cuda: FORCE
	@mkdir -p $(@D)
	@echo '$(COMPILE_CU) $(CUDA_LOADED)' | cmp -s - $@ || echo '$(COMPILE_CU) $(CUDA_LOADED)' > $@
FORCE:

# Generated code is not ours to warn of. A header is made before the files that include it are compiled.
$(B)/proto/%.pb-c.c $(B)/proto/%.pb-c.h: src/formats/%.proto
	@mkdir -p $(@D)
	@echo '  PROTO $<'
	@protoc-c -I $(<D) --c_out=$(B)/proto $<
$(B)/proto/%.o: $(B)/proto/%.c $(B)/flags
	@$(CC) $(filter-out $(WARNINGS),$(ALL_CFLAGS)) -w $(SANITIZER) -c -o $@ $<
$(B)/src/formats/%.o: private ALL_CFLAGS += $(if $(PROTOCOLS),-I$(B)/proto)
$(B)/src/formats/events.o $(B)/src/formats/graph_def.o: | $(B)/proto/events.pb-c.h
$(B)/src/formats/onnx_file.o: | $(B)/proto/onnx.pb-c.h
$(B)/src/formats/hdf5.o $(B)/src/formats/hdf5_library.o: private ALL_CFLAGS += $(HDF5_INCLUDE:%=-isystem %)
$(B)/src/imports/%.o: private ALL_CFLAGS += $(if $(PROTOCOLS),-I$(B)/proto)
$(patsubst %.c,$(B)/%.o,$(wildcard src/imports/onnx_*.c)): | $(B)/proto/onnx.pb-c.h
.SECONDARY: $(PROTOCOLS:=.c) $(PROTOCOLS:=.h)

# The one place where a race is allowed is the one file that the thread sanitizer does not see.
RACY = $(B)/src/cpu/racy.o
$(RACY): SANITIZER := $(filter-out -fsanitize=thread,$(SANITIZER))
# No loop of it may become a call of memcpy, which the sanitizer would see.
$(RACY): ALL_CFLAGS += $(if $(findstring clang,$(CC)),-fno-builtin,-fno-tree-loop-distribute-patterns)

# stb_image is not ours: of what it does the sanitizers see what it does to memory.
$(B)/src/data/stb.o: SANITIZER := $(subst undefined,bounds,$(SANITIZER))

# Fuzzers follow the branches of what reads; what computes is slow enough without.
, = ,
NOT_FUZZED = cuda src/cpu src/device src/store src/engine src/run src/infer src/cluster src/compare \
             src/commands src/library tests bench
$(NOT_FUZZED:%=$(B)/%/%.o): private SANITIZER := $(subst fuzzer-no-link$(,),,$(SANITIZER))
$(B)/tests/fuzz_%.o: private SANITIZER := $(SANITIZER)
$(LOOPS:%=$(B)/%/%.o): private OPTIMIZE := $(OPTIMIZE_LOOPS)
$(B)/bench/%.o: private OPTIMIZE := $(OPTIMIZE_LOOPS)
# A test is compiled as often as it is run: with what sanitizers put in, -O1 takes clang four times as long as
# -O0. Those of the GPU backend compute, fuzzers and what plays GPUs do too.
FOR_TESTS = $(if $(SANITIZE),-fno-omit-frame-pointer,$(if $(MARCH),-march=$(MARCH)))
$(B)/tests/standin/%.o: private OPTIMIZE := $(OPTIMIZE_LOOPS)
$(B)/tests/cuda/%.o $(B)/tests/fuzz_%.o: private OPTIMIZE := -O1 $(FOR_TESTS)
$(B)/tests/%.o: private OPTIMIZE := -O$(if $(SANITIZE),0,1) $(FOR_TESTS)

# Private: the file of flags, which these depend on, is not to have them.
$(B)/cuda/%.o $(B)/tests/cuda/%.o $(B)/bench/gpu_operations.o: private ALL_CFLAGS += $(CUDA_INCLUDES)
$(B)/cuda/libraries.o: private ALL_CFLAGS += -DTRAINER_CUDA_FOLDERS='"$(CUDA_LOADED)"'
$(B)/cuda/libraries.o: $(B)/flags.cuda
$(B)/tests/cuda/%.o: private ALL_CFLAGS += -DSTANDIN=$(if $(filter standin,$(CUDA)),1,0)
$(B)/%.cu.o: %.cu $(B)/flags.cuda
	@mkdir -p $(@D)
	$(if $(ARCHS_SAID),$(info   $(ARCHS_SAID))$(eval ARCHS_SAID :=))
	@echo '  CU   $<'
	@$(COMPILE_CU) -c -o $@ $<
$(B)/tests/standin/%.o: tests/standin/%.cc $(B)/flags.cuda
	@mkdir -p $(@D)
	@echo '  CXX  $<'
	@$(COMPILE_CU) -c -o $@ $<

ifeq ($(CUDA),standin)
# The stand-in's libraries, from a file each.
$(B)/tests/standin/libcublasLt.so.0: $(B)/tests/standin/blas.o
$(B)/tests/standin/libcudnn.so.0: $(B)/tests/standin/dnn.o
$(B)/tests/standin/libnccl.so.0: $(B)/tests/standin/collective.o
$(STANDIN_LIBRARIES):
	@echo '  LINK $@'
	@$(LINK) -shared -o $@ $^
$(PROGRAM) $(TESTS) $(GPU_BENCHES): | $(STANDIN_LIBRARIES)
endif

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo '  CC   $<'
	@$(CC) $(ALL_CFLAGS) $(SANITIZER) $(DEFINES) -MMD -MP -c -o $@ $<
$(B)/tables/%.o: $(B)/tables/%.c $(B)/flags
	@$(CC) $(ALL_CFLAGS) $(SANITIZER) $(DEFINES) -MMD -MP -c -o $@ $<

# A table: declarations, then the two that the folder's header promises: the array, and the kind. It is
# written anew only when the list of files changes.
define table_rule
$(B)/tables/$(notdir $(1)).c: FORCE
	@mkdir -p $$(@D)
	@{ echo '/* generated by the Makefile from the file names in $(1)/ */'; \
	   echo '#include "$(abspath $(header_$(notdir $(1))))"'; \
	   $$(foreach n,$$(sort $$(call name_of,$$(call plugins_of,$(1)))), \
	      echo 'extern const $(struct_$(notdir $(1))) $(kind_$(notdir $(1)))_$$(n);';) \
	   echo 'const $(struct_$(notdir $(1))) *const $(notdir $(1))[] = {'; \
	   $$(foreach n,$$(sort $$(call name_of,$$(call plugins_of,$(1)))), \
	      echo '    &$(kind_$(notdir $(1)))_$$(n),';) \
	   echo '    0};'; \
	   echo 'static const struct plugin *const plugins[] = {'; \
	   $$(foreach n,$$(sort $$(call name_of,$$(call plugins_of,$(1)))), \
	      echo '    &$(kind_$(notdir $(1)))_$$(n).plugin,';) \
	   echo '    0};'; \
	   echo 'const struct plugin_kind $(kind_$(notdir $(1)))_kind = {"$(kind_$(notdir $(1)))",' \
	      '"$(notdir $(1))", plugins};'; } > $$@.new; \
	 cmp -s $$@.new $$@ && rm $$@.new || mv $$@.new $$@
endef
$(foreach f,$(PLUGIN_FOLDERS),$(eval $(call table_rule,$(f))))

# The same for device code: the optimizers' files, of which a C++ compiler sees the formulas alone, and their
# places in the table.
FORMULAS = $(sort $(call name_of,$(call plugins_of,src/store/optimizers)))
$(B)/tables/optimizers.h: FORCE
	@mkdir -p $(@D)
	@{ echo '/* generated by the Makefile from the file names in src/store/optimizers/ */'; \
	   $(foreach f,$(sort $(call plugins_of,src/store/optimizers)),echo '#include "$(abspath $(f))"';) \
	   printf '#define OPTIMIZERS(ROW)'; n=0; \
	   for name in $(FORMULAS); do printf " ROW($$n, $$name)"; n=$$((n + 1)); done; echo; } > $@.new; \
	   cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(B)/cuda/vectors.cu.o: $(B)/tables/optimizers.h

# --- tests: every tests/FOLDER/NAME.c is a program that exits non-zero when it fails ---
$(B)/tests/%: $(B)/tests/%.o $(B)/libtrainer.a
	@echo '  LINK $@'
	@$(LINK) -o $@ $^ $(LIBS)
.SECONDARY: $(TEST_SOURCES:%.c=$(B)/%.o) $(B)/tests/fail_nth.o $(BENCHES:%=%.o) \
            $(B)/bench/gpu_exchange.o $(B)/bench/gpu_operations.o $(B)/bench/gpu_latency.cu.o

# --- measuring: build/bench/step times every kernel of one step beside the peak of a core,
# build/bench/input the building of batches of images, build/bench/exchange what each strategy moves beside
# memcpy, build/bench/wire an endpoint beside a raw socket, build/bench/predict one example predicted alone
# and in a batch;
# bench/compare.py needs PyTorch ---
$(B)/bench/%: $(B)/bench/%.o $(B)/libtrainer.a
	@echo '  LINK $@'
	@$(LINK) -o $@ $^ $(LIBS)
# Linked with CUDA's runtime alone, so that it is there when nothing else of ours is.
$(B)/bench/gpu_latency: $(B)/bench/gpu_latency.cu.o $(filter $(B)/tests/standin/%.o,$(CUDA_OBJECTS))
	@echo '  LINK $@'
	@$(LINK) -o $@ $^ $(CUDA_LIBS) -pthread
# It stands between the backend and its contests.
$(B)/bench/gpu_operations: $(B)/bench/gpu_operations.o $(B)/libtrainer.a
	@echo '  LINK $@'
	@$(LINK) -Wl,--wrap=gpu_measure -o $@ $^ $(LIBS)
bench: $(PROGRAM) $(BENCHES)
	$(B)/bench/step
	$(B)/bench/input
	$(B)/bench/exchange
	$(B)/bench/wire
	$(B)/bench/predict

# --- fuzzing, with clang: every tests/fuzz_*.c for FUZZ_SECONDS, under the address and undefined sanitizers.
# Each fails when it finds something, which is left in the build folder as crash-*, and when nothing of what
# it made was accepted ---
FUZZ_SECONDS = 5
FUZZERS = $(patsubst tests/%.c,$(B)/tests/%,$(filter-out \
          $(if $(filter 0,$(STB)),tests/fuzz_image.c) \
          $(if $(filter 0,$(PROTOBUF)),tests/fuzz_onnx.c),$(wildcard tests/fuzz_*.c)))
$(B)/tests/fuzz_%: $(B)/tests/fuzz_%.o $(B)/libtrainer.a
	@echo '  LINK $@'
	@$(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS)
fuzz:
	@$(MAKE) --no-print-directory B=$(B)/fuzz CC=clang ONEDNN=0 \
	   SANITIZE=fuzzer-no-link,address,undefined fuzz-each
fuzz-each: $(FUZZERS:%=%.run)
.SECONDARY: $(FUZZERS) $(FUZZERS:%=%.o)
$(B)/tests/fuzz_%.run: $(B)/tests/fuzz_%
	@$< -seed=1 -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$(B)/ >$<.log 2>&1 || \
	   { echo "  FUZZ $<"; tail -n 40 $<.log; exit 1; }
	@echo "  FUZZ $<"; grep -E '^(accepted|Done)' $<.log

# tests/cuda/facts*.sh run all of gpu-facts on the stand-in.
tests: $(PROGRAM) library $(EXAMPLES) $(TESTS) $(BENCHES) $(B)/tests/fail_nth \
       $(if $(filter standin,$(CUDA)),$(GPU_BENCHES))
	@tests/runner $(B) $(PROGRAM)

# --- faults: clusters in the simulated world, by seed; the schedule of one that fails is printed, and repeats
# with FIRST=N SEEDS=1, or with FAULTS=FILE where it was put into a file (TELL=FILE). real-faults FAULTS=FILE:
# the same with real processes ---
FIRST = 1
SEEDS = 10000
faults: $(B)/tests/cluster/faults $(B)/tests/cluster/returns
	@cd $(B) && FIRST=$(FIRST) SEEDS=$(SEEDS) $(if $(FAULTS),FAULTS='$(abspath $(FAULTS))') \
	   $(if $(TELL),TELL='$(if $(filter 1,$(TELL)),1,$(abspath $(TELL)))') \
	   tests/cluster/faults
	$(if $(FAULTS)$(TELL),,@cd $(B) && FIRST=$(FIRST) SEEDS=$(SEEDS) tests/cluster/returns)
real-faults: $(PROGRAM)
	@TRAINER=$(dir $(PROGRAM))$(notdir $(PROGRAM)) tests/real_faults.py --verbose --faults='$(FAULTS)'

# --- mutations: bugs put into a copy of the tree, each to be found by its test (tests/mutate --help) ---
mutations:
	@tests/mutate $(MAKEOVERRIDES)
mutations-quick:
	@tests/mutate --quick $(MAKEOVERRIDES)
verify:
	@tests/verify

# --- the GPU backend's own tests, on the stand-in (make CUDA=standin B=build/standin gpu-tests) or on a
# GPU ---
GPU_TESTS = $(filter $(B)/tests/cuda/%,$(TESTS)) $(B)/tests/device/gpu \
            $(B)/tests/engine/balanced $(B)/tests/engine/group $(B)/tests/engine/microbatches \
            $(B)/tests/engine/pipeline $(B)/tests/library/place
gpu-tests: $(PROGRAM) $(GPU_TESTS) $(GPU_BENCHES)
	@tests/runner $(B) $(PROGRAM) $(GPU_TESTS:$(B)/tests/%=%) cuda/train cuda/ranks cuda/facts cuda/facts_hang

# --- on a machine with a GPU: one command that builds what it needs, ends within LIMIT_S seconds, and leaves
# in REPORT, a folder, all that can be found out there; exit code 4 where there is no GPU. With CUDA=standin
# it shows that it works, and measures nothing ---
LIMIT_S = 560
gpu-facts:
	@[ -n '$(REPORT)' ] || { echo 'gpu-facts: expected REPORT=FOLDER' >&2; exit 2; }
	@$(PYTHON) bench/gpu_facts.py --report='$(REPORT)' --seconds=$(LIMIT_S) --build='$(B)' \
	   --cuda=$(if $(filter standin,$(CUDA)),standin,1)

# These two build on all cores unless make was told -j.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc || echo 2))
check: EXTRA = python3=python3
check: install-missing
	@$(MAKE) $(PARALLEL) --no-print-directory tests

install-missing:
	@tests/install-missing $(EXTRA)

demo: install-missing
	@$(MAKE) $(PARALLEL) --no-print-directory all
	@bench/demo $(dir $(PROGRAM))$(notdir $(PROGRAM))

# The program is one file, the library another. They are for processors like the one they were built on, and
# for others when built with MARCH= (nothing). A GPU's libraries are looked for at run time. The program
# writes its own manual page and completions.
PREFIX = /usr/local
PLACE = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
LIBRARIES = $(DESTDIR)$(PREFIX)/lib
HEADERS = $(DESTDIR)$(PREFIX)/include
MANUAL = $(SHARE)/man/man1
COMPLETIONS_bash = $(SHARE)/bash-completion/completions
COMPLETIONS_zsh = $(SHARE)/zsh/site-functions
COMPLETIONS_fish = $(SHARE)/fish/vendor_completions.d
WRITTEN = '$(MANUAL)/trainer.1' '$(COMPLETIONS_bash)/trainer' \
          '$(COMPLETIONS_zsh)/_trainer' '$(COMPLETIONS_fish)/trainer.fish'
RUN_PROGRAM = '$(dir $(PROGRAM))$(notdir $(PROGRAM))'
INSTALLED = '$(PLACE)/trainer' '$(HEADERS)/trainer.h' '$(LIBRARIES)/libtrainer.a' \
            '$(LIBRARIES)/pkgconfig/trainer.pc' \
            $(foreach n,$(LIBRARY_FILE) $(LIBRARY_SONAME) $(LIBRARY_NAME),'$(LIBRARIES)/$(n)')
install: $(PROGRAM) library
	install -d '$(PLACE)' '$(HEADERS)' '$(LIBRARIES)/pkgconfig' '$(MANUAL)' \
	   '$(COMPLETIONS_bash)' '$(COMPLETIONS_zsh)' '$(COMPLETIONS_fish)'
	install -m 755 '$(PROGRAM)' '$(PLACE)/trainer'
	install -m 644 src/library/trainer.h '$(HEADERS)/trainer.h'
	install -m 644 $(LIBRARY)/libtrainer.a '$(LIBRARIES)/libtrainer.a'
	install -m 755 $(LIBRARY)/$(LIBRARY_FILE) '$(LIBRARIES)/$(LIBRARY_FILE)'
	ln -sf $(LIBRARY_FILE) '$(LIBRARIES)/$(LIBRARY_SONAME)'
	ln -sf $(LIBRARY_SONAME) '$(LIBRARIES)/$(LIBRARY_NAME)'
	printf 'prefix=%s\nName: trainer\nDescription: Graphs of operations, and the training '\
	'of networks on many devices\nVersion: %s\n'\
	'Cflags: -I$${prefix}/include\nLibs: -L$${prefix}/lib -ltrainer\nLibs.private: %s\n' \
	   '$(PREFIX)' '$(VERSION)' '$(LIBS)' >'$(LIBRARIES)/pkgconfig/trainer.pc'
	$(RUN_PROGRAM) manual >'$(MANUAL)/trainer.1'
	$(RUN_PROGRAM) completions bash >'$(COMPLETIONS_bash)/trainer'
	$(RUN_PROGRAM) completions zsh >'$(COMPLETIONS_zsh)/_trainer'
	$(RUN_PROGRAM) completions fish >'$(COMPLETIONS_fish)/trainer.fish'
	chmod 644 $(WRITTEN) '$(LIBRARIES)/pkgconfig/trainer.pc'
uninstall:
	rm -f $(INSTALLED) $(WRITTEN)

format:
	clang-format -i $(shell git ls-files '*.c' '*.h' '*.cu' '*.cc' '*.hh')

clean:
	rm -rf build trainer

-include $(OBJECTS:.o=.d) $(B)/src/main.d $(wildcard $(B)/bench/*.d) \
         $(TEST_SOURCES:%.c=$(B)/%.d) $(STANDIN_LIBRARY_SOURCES:%.cc=$(B)/%.d)
