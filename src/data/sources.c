/* The list of sources. The sums of MNIST and CIFAR-10 are those of the official files, after comparing
 * their published MD5 sums; those of Iris are of the files of the TensorFlow tutorials. */
#include "sources.h"

#include <stdio.h>
#include <string.h>

static const struct source_file mnist[] = {
    {"train-images-idx3-ubyte.gz", 9912422,
     "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
    {0}};

static const struct source_file cifar10[] = {
    {"data_batch_1.bin", 30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5", NULL},
    {"data_batch_2.bin", 30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed", NULL},
    {"data_batch_3.bin", 30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67", NULL},
    {"data_batch_4.bin", 30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48", NULL},
    {"data_batch_5.bin", 30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add", NULL},
    {"test_batch.bin", 30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b", NULL},
    {0}};

static const struct source_file iris[] = {
    {"iris_training.csv", 2194, "c4c7652b14da06ba63b37f9f47d2e9aa4edced85701c9f8fce37501a1ca792e4", NULL},
    {"iris_test.csv", 573, "3b6dde8ad159a8545d4b4d8290a9cc7d49a9a8803d6ffe755884269371cc1eb1", NULL},
    {0}};

const struct source sources[] = {
    {.dataset = "cifar10",
     .addresses = {"https://www.cs.toronto.edu/~kriz/"},
     .archive = "cifar-10-binary.tar.gz",
     .archive_bytes = 170052171,
     .files = cifar10},
    {.dataset = "iris",
     .addresses = {"https://storage.googleapis.com/download.tensorflow.org/data/",
                   "http://download.tensorflow.org/data/"},
     .files = iris},
    {.dataset = "mnist",
     .addresses = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                   "https://storage.googleapis.com/cvdf-datasets/mnist/"},
     .files = mnist},
    {0}};

const struct source *source_find(const char *dataset) {
    for (const struct source *source = sources; source->dataset != NULL; source++)
        if (strcmp(source->dataset, dataset) == 0) return source;
    return NULL;
}

/* `name`, with or without the .gz of the list's. */
static const struct source_file *find_file(const struct source *source, const char *name) {
    const size_t length = strlen(name);
    for (const struct source_file *file = source->files; file->name != NULL; file++)
        if (strncmp(file->name, name, length) == 0 &&
            (file->name[length] == '\0' || strcmp(file->name + length, ".gz") == 0))
            return file;
    return NULL;
}

const char *source_advice(const char *dataset, const char *name, char *out, size_t bytes) {
    const struct source *source = source_find(dataset);
    const struct source_file *file = source != NULL ? find_file(source, name) : NULL;
    out[0] = '\0';
    if (file == NULL) return out;
    if (TRAINER_CURL)
        snprintf(out, bytes, "trainer fetch %s downloads it", dataset);
    else
        snprintf(out, bytes, "it is %s %s%s", source->archive != NULL ? "in" : "at", source->addresses[0],
                 source->archive != NULL ? source->archive : file->name);
    return out;
}
