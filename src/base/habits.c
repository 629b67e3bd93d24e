/* Names that other programs have for what is called otherwise here. */
#include "option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "file.h"
#include "text.h"

static const struct {
    /* kind: an option's name: values of it; typed: with bars between, or `*` and how the name of a file ends,
     * which is there; instead: `*` is the value typed, or that file, `#` as many CPU devices, `@` as many
     * GPUs, `%` a `*` */
    const char *kind, *typed, *instead;
} habits[] = {
    {"option", "lr|learning-rate|rate", "--optimizer=momentum:rate=*"},
    {"option", "momentum", "--optimizer=momentum:momentum=*"},
    {"option", "weight-decay|wd|l2", "--decay=*"},
    {"option", "batch-size|batchsize|bs|minibatch", "--batch=*"},
    {"option", "num-epochs|n-epochs|max-epochs", "--epochs=*"},
    {"option", "workers|num-workers|nproc|nproc-per-node|world-size", "--devices=#"},
    {"option", "gpus|num-gpus|n-gpus|ngpus|n-gpu", "--devices=@"},
    {"option", "gpu|cuda|use-cuda|use-gpu", "--devices=gpu:0"},
    {"option", "no-cuda|no-gpu", "--devices=cpu:%"},
    {"option", "cpu|cpus", "--devices=cpu:0"},
    {"option", "local-rank", "--devices=cpu:%"}, /* one process has them all */
    {"option", "nodes|nnodes|num-nodes", "--hosts=HOST,HOST"},
    {"option", "patience|early-stopping", "--early-stop=*"},
    {"option", "val-split|validation-split", "--validation=*"},
    {"option", "ema|ema-decay", "--average=*"},
    {"option", "grad-clip|gradient-clip|clip-norm|max-grad-norm", "--clip=*"},
    {"option", "hidden|hidden-size", "--model=mlp:hidden=*"},
    {"option", "log-interval|print-interval|print-freq|log-freq", "--print-every=*"},
    {"option", "overwrite|force", "--replace"},
    {"option", "strategies", "trainer bench --strategies=*"},
    {"option", "amp|bf16|fp16|mixed-precision", "--precision=bf16"},
    {"option", "arch|network|net", "--model=*"},
    {"option", "data-path|data-root|root", "--data-dir=*"},
    {"option", "output|output-dir|logdir|log-dir|save|save-dir|save-path", "--out=*"},
    {"option", "load|restore|checkpoint|resume-from|resume-from-checkpoint", "--resume=*"},
    {"option", "random-seed|manual-seed", "--seed=*"},
    {"option", "lr-scheduler|lr-schedule|scheduler", "--schedule=*"},
    {"option", "tensorboard", "--outputs=csv,tensorboard"},
    {"option",
     "gradient-accumulation-steps|gradient-accumulation|grad-accumulation|grad-accum|accumulation-steps|"
     "accumulate|accumulate-grad-batches|accum-iter",
     "--microbatches=*"},
    {"option", "criterion|objective|loss-function", "--loss=*"},
    {"loss",
     "cross-entropy|softmax|ce|xent|crossentropy|categorical-crossentropy|sparse-categorical-crossentropy|"
     "nll|log-loss",
     "--loss=cross-entropy"},
    {"loss", "binary-cross-entropy|sigmoid|bce|bce-with-logits|binary-crossentropy",
     "--loss=binary-cross-entropy"},
    {"loss", "mse|l2|mean-squared-error|squared-error|squared", "--loss=mse"},
    {"loss", "mae|l1|mean-absolute-error|absolute-error|absolute", "--loss=mae"},
    {"strategy", "hogwild", "--strategy=async-lockfree:apply=worker"},
    {"strategy", "project-adam|lockfree|lock-free", "--strategy=async-lockfree"},
    {"strategy", "allreduce|all-reduce|ring-allreduce|ddp|horovod|mirrored|data-parallel|bsp|synchronous",
     "--strategy=sync"},
    {"strategy", "downpour|asgd|asynchronous", "--strategy=async-apply"},
    {"strategy", "ps|parameter-server|param-server", "--strategy=sharded"},
    {"strategy", "fedavg|federated|model-averaging|periodic-averaging", "--strategy=local-sgd"},
    {"strategy", "diloco", "--strategy=local-sgd:outer=nesterov"},
    {"strategy", "post-local-sgd|post-local", "--strategy=local-sgd:sync_steps=N"},
    {"strategy", "k-async|kasync|softsync|n-softsync", "--strategy=adasync:adapt=none,k=N"},
    {"strategy", "ad-psgd|adpsgd|d-psgd|decentralized|peer-to-peer", "--strategy=gossip"},
    {"strategy", "delay-compensation|delay-compensated|dcasgd", "--strategy=dc-asgd"},
    {"strategy", "elastic|elastic-averaging|eamsgd|aeasgd", "--strategy=easgd"},
    {"strategy", "stale-synchronous|stale-synchronous-parallel", "--strategy=ssp"},
    {"model", "resnet|resnet18|resnet20|resnet34|resnet50", "--model=layers:models/layers/resnet20.txt"},
    {"model", "mobilenet|mobilenet-v1|mobilenetv2|mobilenet-v2",
     "--model=layers:models/layers/mobilenet.txt"},
    {"model", "vgg|vgg16|convnet", "--model=alexnet"},
    {"model", "dnn|fc|dense|perceptron", "--model=mlp"},
    {"model", "linear|logistic|logreg", "--model=softmax"},
    {"model", "*.txt", "--model=layers:*"},
    {"model", "*.onnx", "--model=onnx:file=*"},
    {"model", "*.keras", "--model=keras:file=*"},
    {"model", "*.h5", "--model=keras:file=*"},
    {"dataset", "*.csv", "--dataset=csv:file=*"},
    {"dataset", "*.npz", "--dataset=npz:file=*"},
    {"dataset", "*/", "--dataset=pictures:dir=*"},
    {"dataset", "file|folder|table", "--dataset=csv:file=..."},
    {"dataset", "numpy|npy|array|arrays", "--dataset=npz:file=..."},
    {"optimizer", "rmsprop|adamw", "--optimizer=adam"},
    {"schedule", "steplr|multisteplr|exponential", "--schedule=step"},
    {"schedule", "cosine-annealing|cosineannealing|cosineannealinglr", "--schedule=cosine"},
    {"setting", "lr|learning-rate", "rate"},
    {"command", "run|fit|start", "trainer train"},
    {"command", "test|eval", "trainer evaluate"},
    {"command", "infer|classify", "trainer predict"},
    {"command", "download|get", "trainer fetch"},
    {"command", "benchmark|compare", "trainer bench"},
};

/* In any case; '-' and '_' are the same. */
static bool is_one_of(const char *names, const char *typed) {
    const size_t length = strlen(typed);
    for (const char *name = names; *name; name += strcspn(name, "|"), name += *name == '|') {
        size_t i = 0;
        while (i < length && (typed[i] == '_' ? '-' : tolower((unsigned char)typed[i])) == name[i]) i++;
        if (length > 0 && i == length && strcspn(name, "|") == length) return true;
    }
    return false;
}

/* "*.csv": a file of this kind; a slash: a folder. */
static bool is_such_file(const char *pattern, const char *path) {
    const char *end = pattern + 1;
    const size_t bytes = strlen(path), least = strlen(end);
    if (strcmp(end, "/") == 0) return file_is_folder(path);
    return bytes > least && strcmp(path + bytes - least, end) == 0 && file_exists(path);
}

/* The file that comes with the program's sources and is meant by "--model=layers:FILE"; else NULL. */
static const char *file_of_sources(const char *instead) {
    const char *file = strstr(instead, ":models/");
    return file != NULL ? file + 1 : NULL;
}

const char *habit_file(const char *kind, const char *typed) {
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcmp(habits[i].kind, kind) == 0 && is_one_of(habits[i].typed, typed))
            return file_of_sources(habits[i].instead);
    return NULL;
}

/* "cpu:0,cpu:1,cpu:2" for "3"; one per core where that would not be typed. */
static void add_devices(struct text *text, const char *backend, const char *value) {
    const long count = value != NULL ? strtol(value, NULL, 10) : 0;
    if (count < 1 || count > 8) text_add(text, "%s:*", backend);
    for (long i = 0; i < count && count <= 8; i++) text_add(text, "%s%s:%ld", i > 0 ? "," : "", backend, i);
}

const char *habit_instead(const char *kind, const char *typed, const char *value, char *out, size_t bytes) {
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        const bool is_file = habits[i].typed[0] == '*';
        if (strcmp(habits[i].kind, kind) != 0) continue;
        if (!(is_file ? is_such_file : is_one_of)(habits[i].typed, typed)) continue;
        const char *const source = file_of_sources(habits[i].instead);
        if (source != NULL && !file_exists(source)) return NULL;
        if (is_file) value = typed;
        const char *instead = habits[i].instead;
        const size_t before = strcspn(instead, "*#@%");
        struct text text = text_into(out, bytes);
        text_add_bytes(&text, instead, before);
        if (instead[before] == '#') add_devices(&text, "cpu", value);
        if (instead[before] == '@') add_devices(&text, "gpu", value);
        if (instead[before] == '%') text_add(&text, "*");
        if (instead[before] == '*') text_add(&text, "%.100s", value != NULL ? value : "...");
        return out;
    }
    return NULL;
}
