/* Names that other programs have for what is called otherwise here. */
#include "option.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *kind, *typed, *instead; /* typed: with bars between; instead: `*` is the value typed */
} habits[] = {
    {"option", "lr|learning-rate|rate", "--optimizer=momentum:rate=*"},
    {"option", "momentum", "--optimizer=momentum:momentum=*"},
    {"option", "weight-decay|wd|l2", "--decay=*"},
    {"option", "batch-size|bs|minibatch", "--batch=*"},
    {"option", "num-epochs|n-epochs|max-epochs", "--epochs=*"},
    {"option", "workers|num-workers|nproc|world-size", "--devices=cpu:0,cpu:1"},
#if TRAINER_CUDA
    {"option", "gpu|gpus|cuda", "--devices=gpu:0"},
#endif
    {"option", "amp|bf16|fp16|mixed-precision", "--precision=bf16"},
    {"option", "arch|network|net", "--model=*"},
    {"option", "data-path|data-root|root", "--data-dir=*"},
    {"option", "output|output-dir|logdir|log-dir|save-dir", "--out=*"},
    {"option", "load|restore|checkpoint|resume-from", "--resume=*"},
    {"option", "random-seed|manual-seed", "--seed=*"},
    {"strategy", "hogwild", "--strategy=async-lockfree:apply=worker"},
    {"strategy", "project-adam|lockfree|lock-free", "--strategy=async-lockfree"},
    {"strategy", "allreduce|all-reduce|ddp|horovod|mirrored|data-parallel|bsp|synchronous",
     "--strategy=sync"},
    {"strategy", "downpour|asgd|asynchronous", "--strategy=async-apply"},
    {"strategy", "ps|parameter-server|param-server", "--strategy=sharded"},
    {"strategy", "fedavg|federated|model-averaging|periodic-averaging", "--strategy=local-sgd"},
    {"strategy", "stale-synchronous|stale-synchronous-parallel", "--strategy=ssp"},
    {"model", "resnet|resnet18|resnet20|resnet50|vgg|convnet", "--model=alexnet"},
    {"model", "dnn|fc|dense|perceptron", "--model=mlp"},
    {"model", "linear|logistic|logreg", "--model=softmax"},
    {"dataset", "file|folder|table", "--dataset=csv:file=..."},
    {"optimizer", "rmsprop|adamw", "--optimizer=adam"},
    {"command", "run|fit|start", "trainer train"},
    {"command", "test|eval", "trainer evaluate"},
    {"command", "infer|classify", "trainer predict"},
#if TRAINER_CURL
    {"command", "download|get", "trainer fetch"},
#endif
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

const char *habit_instead(const char *kind, const char *typed, const char *value, char *out, size_t bytes) {
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        if (strcmp(habits[i].kind, kind) != 0 || !is_one_of(habits[i].typed, typed)) continue;
        const char *instead = habits[i].instead;
        const int before = (int)strcspn(instead, "*");
        snprintf(out, bytes, "%.*s%.100s", before, instead,
                 instead[before] == '\0' ? ""
                 : value != NULL         ? value
                                         : "...");
        return out;
    }
    return NULL;
}
