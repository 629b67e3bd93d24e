/* layers: a network of one's own, as a list of layers in a text: --model='layers:conv 32 3x3 relu; maxpool 2;
 * flatten; dense', or --model=layers:FILE. What a run keeps and tells others is the text itself, never the
 * file's name. */
#include "../src/base/file.h"
#include "../src/base/memory.h"
#include "../src/graph/layers_text.h"
#include "../src/graph/model.h"

#define USUAL "dense 100 relu; dense" /* where nothing is said */

static int parse(struct layer_list *list, const char *text, struct error *error) {
    if (text[0] == '\0') text = USUAL;
    return layers_parse(list, "layers", text, strlen(text), ERROR_USAGE, error);
}

static int check_text(const char *what, const char *text, struct error *error) {
    struct layer_list list;
    (void)what;
    const int code = parse(&list, text, error);
    layers_close(&list);
    return code;
}

/* One word that is no layer is a file, and so is what begins like a path. */
static bool is_file(const char *text) {
    if (text[0] == '/' || strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0) return true;
    if (text[0] == '\0' || text[strcspn(text, " \t\n;#=")] != '\0') return false;
    return layer_named(text) == LAYER_NONE;
}

/* Reads the list, from the file that the text names or from the text. */
static int read_list(struct layer_list *list, const char *text, struct error *error) {
    enum { FILE_BYTES_MOST = 1 << 20 }; /* comments included */
    char *content = NULL;
    size_t bytes = 0;
    if (!is_file(text)) return parse(list, text, error);
    if (!file_exists(text) && !strpbrk(text, "/.")) return parse(list, text, error); /* a slip of the keys */
    RETURN_IF(file_read_plain(text, FILE_BYTES_MOST, &content, &bytes, error));
    const int code = layers_parse(list, text, content, bytes, ERROR_FILE, error);
    memory_free(content);
    return code;
}

static int typed(char *text, size_t bytes, struct error *error) {
    struct layer_list list = {0};
    const bool was_file = is_file(text);
    RETURN_IF(read_list(&list, text, error));
    struct text words = text_growing(error);
    layers_write(&list, "; ", &words);
    layers_close(&list);
    int code = text_end(&words);
    if (code == OK && words.used >= bytes)
        code = error_set(error, was_file ? ERROR_FILE : ERROR_USAGE,
                         "%.200s: %zu characters without comments, expected fewer than %zu",
                         was_file ? text : "layers", words.used, bytes);
    if (code == OK) memcpy(text, words.bytes, words.used + 1);
    memory_free(words.bytes);
    return code;
}

/* Images, if a layer takes the network's input as one. */
static int side_of(const void *text) {
    struct layer_list list;
    struct error ignored = {0};
    int side = 0;
    if (parse(&list, text, &ignored) != OK) return 0;
    for (int i = 0; i < list.count; i++)
        for (int k = 0; k < list.layers[i].inputs; k++)
            if (list.layers[i].input[k] == LAYER_INPUT &&
                layer_rows[list.layers[i].kind].takes == LAYER_TAKES_IMAGE)
                side = 1;
    layers_close(&list);
    return side;
}

static node build(struct graph *g, node x, int classes, const void *text) {
    struct layer_list list;
    if (g->error.code != OK || parse(&list, text, &g->error) != OK) return NONE;
    const node logits = layers_build(g, &list, x, classes);
    layers_close(&list);
    error_prefix(&g->error, "layers: ");
    return logits;
}

static const struct option rows[] = {{0}};

static const struct recipe recipe[] = {
    {"optimizer", "momentum:rate=0.02"}, {"schedule", "cosine"}, {"batch", "32"}, {"epochs", "60"}, {0}};

const struct model model_layers = {
    .plugin = {.name = "layers",
               .help = "a network of your own, as a text of layers or a file with one (docs/networks.md)",
               .options = rows,
               .check_text = check_text},
    .build = build,
    .recipe = recipe,
    .side_of = side_of,
    .typed = typed,
};
