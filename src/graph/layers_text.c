/* Networks as text, read and written. See layers_text.h. */
#include "layers_text.h"

#include <stdarg.h>
#include <stdio.h>

enum { WORD_BYTES = 200, ATTRIBUTES_MOST = 31 }; /* of a layer; bits of an int */

/* --- reading --- */

struct parser {
    struct layer_list *list;
    const char *where, *at, *end;
    const char *line_start; /* of the line that `word` is in */
    int line;               /* its number, from 1 */
    const char *word_start; /* of the word in hand */
    char word[WORD_BYTES];
    int code;
    struct error *error;
};

/* The layer in hand. */
struct reading {
    struct layer *layer;
    unsigned given; /* bit i: attribute i was given */
    int inputs;     /* names so far */
    int number;     /* of the layer, from 0 */
};

/* Complains of the word in hand. */
__attribute__((format(printf, 2, 3))) static int wrong(struct parser *parser, const char *format, ...) {
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return error_set(parser->error, parser->code, "%s: line %d, column %d: %s", parser->where, parser->line,
                     (int)(parser->word_start - parser->line_start) + 1, words);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_layer(char c) {
    return c == '\n' || c == ';' || c == '#';
}

static void skip_blanks(struct parser *parser) {
    while (parser->at < parser->end && is_blank(*parser->at)) parser->at++;
}

/* Whether the layer in hand has another word; then it is `word`. `stop`: what ends it beside blanks. */
static int next_word(struct parser *parser, char stop, bool *there) {
    size_t length = 0;
    skip_blanks(parser);
    parser->word_start = parser->at;
    while (parser->at < parser->end && !is_blank(*parser->at) && !ends_layer(*parser->at) &&
           *parser->at != stop) {
        const unsigned char c = (unsigned char)*parser->at++;
        if (c < ' ' || c > '~') {
            parser->word_start = parser->at - 1;
            return wrong(parser, "found byte 0x%02x, expected letters, digits and signs", c);
        }
        if (length + 1 == sizeof parser->word)
            return wrong(parser, "a word of more than %zu characters", sizeof parser->word - 1);
        parser->word[length++] = (char)c;
    }
    parser->word[length] = '\0';
    *there = length > 0;
    return OK;
}

/* Past what ends a layer: a comment, and a ';' or the end of the line. */
static void end_layer(struct parser *parser) {
    if (parser->at < parser->end && *parser->at == '#')
        while (parser->at < parser->end && *parser->at != '\n') parser->at++;
    if (parser->at == parser->end) return;
    if (*parser->at++ == '\n') {
        parser->line++;
        parser->line_start = parser->at;
    }
}

static int find_name(const struct layer_list *list, int before, const char *name) {
    for (int i = 0; i < before; i++)
        if (strcmp(list->layers[i].name, name) == 0) return i;
    return LAYER_INPUT;
}

static int unknown_layer(struct parser *parser) {
    const char *names[LAYER_KINDS + 1] = {0};
    for (int kind = 0; kind < LAYER_KINDS; kind++) names[kind] = layer_rows[kind].name;
    const char *nearest = option_nearest(parser->word, names);
    if (nearest) return wrong(parser, "unknown layer \"%s\"; did you mean \"%s\"?", parser->word, nearest);
    return wrong(parser, "unknown layer \"%s\"; trainer list layers shows all", parser->word);
}

static int set_attribute(struct parser *parser, struct reading *reading, const struct option *row,
                         const char *value) {
    const struct layer_row *of = &layer_rows[reading->layer->kind];
    const unsigned bit = 1u << (row - of->attributes);
    struct error why = {0};
    if (reading->given & bit) return wrong(parser, "%s: %s is set twice", of->name, row->name);
    reading->given |= bit;
    if (option_set(of->attributes, &reading->layer->values, of->name, row->name, value, &why) != OK)
        return wrong(parser, "%s", why.words);
    return OK;
}

/* A number, or sizes: the next of the attributes that have a place. */
static int place_number(struct parser *parser, struct reading *reading) {
    const struct layer_row *of = &layer_rows[reading->layer->kind];
    for (const struct option *row = of->attributes; row->name; row++)
        if (row->flags & ATTRIBUTE_PLACED && !(reading->given & 1u << (row - of->attributes)))
            return set_attribute(parser, reading, row, parser->word);
    return wrong(parser, "%s: found \"%s\", expected no further number", of->name, parser->word);
}

/* "stride=2": `equals` is where the sign is. */
static int set_key(struct parser *parser, struct reading *reading, char *equals) {
    const struct layer_row *of = &layer_rows[reading->layer->kind];
    struct error why = {0};
    *equals = '\0';
    const struct option *row = option_find(of->attributes, parser->word);
    if (row) return set_attribute(parser, reading, row, equals + 1);
    option_set(of->attributes, &reading->layer->values, of->name, parser->word, equals + 1, &why);
    return wrong(parser, "%s", why.words);
}

/* The attribute that a word sets by itself: a flag's name, or one of the values of a choice; or NULL. */
static const struct option *set_by_word(const struct layer_row *of, const char *word) {
    for (const struct option *row = of->attributes; row->name; row++) {
        if (row->type == OPTION_FLAG && strcmp(row->name, word) == 0) return row;
        if (row->type != OPTION_CHOICE) continue;
        struct layer_values scratch;
        struct error ignored = {0};
        if (option_set(of->attributes, &scratch, of->name, row->name, word, &ignored) == OK) return row;
    }
    return NULL;
}

static int add_input(struct parser *parser, struct reading *reading, int input) {
    const struct layer_row *of = &layer_rows[reading->layer->kind];
    const int most = of->joins ? MAX_INPUTS : 1;
    if (reading->inputs == most)
        return wrong(parser, "%s: found input \"%s\", expected at most %d", of->name, parser->word, most);
    reading->layer->input[reading->inputs++] = input;
    return OK;
}

static int unknown_word(struct parser *parser, const struct layer_row *of) {
    const char *names[LAYER_KINDS + ATTRIBUTES_MOST + 1] = {0};
    int count = 0;
    for (int kind = 0; kind < LAYER_KINDS; kind++)
        if (layer_rows[kind].takes == LAYER_IS_ACTIVATION) names[count++] = layer_rows[kind].name;
    for (int i = 0; i < ATTRIBUTES_MOST && of->attributes[i].name; i++)
        names[count++] = of->attributes[i].name;
    const char *nearest = option_nearest(parser->word, names);
    if (nearest)
        return wrong(parser, "%s: unknown word \"%s\"; did you mean \"%s\"?", of->name, parser->word,
                     nearest);
    return wrong(parser, "%s: \"%s\" is not a setting, an activation or a layer before this one", of->name,
                 parser->word);
}

/* A word that is neither number nor key=value. */
static int read_name(struct parser *parser, struct reading *reading) {
    const struct layer_row *of = &layer_rows[reading->layer->kind];
    const char *word = parser->word;
    const struct option *row = set_by_word(of, word);
    if (row) return set_attribute(parser, reading, row, row->type == OPTION_FLAG ? "1" : word);
    if (strcmp(word, LAYER_WORD_INPUT) == 0) return add_input(parser, reading, LAYER_INPUT);
    if (strcmp(word, LAYER_WORD_PREVIOUS) == 0) return add_input(parser, reading, reading->number - 1);
    const int input = find_name(parser->list, reading->number, word);
    if (input != LAYER_INPUT) return add_input(parser, reading, input);
    const enum layer_kind kind = layer_named(word);
    if (kind != LAYER_NONE && layer_rows[kind].takes == LAYER_IS_ACTIVATION) {
        reading->layer->activation = kind;
        return OK;
    }
    if (kind != LAYER_NONE)
        return wrong(parser, "%s: found the layer \"%s\", expected it on a line or after a ';' of its own",
                     of->name, word);
    return unknown_word(parser, of);
}

static int read_word(struct parser *parser, struct reading *reading) {
    char *equals = strchr(parser->word, '=');
    if (reading->layer->activation != LAYER_NONE)
        return wrong(parser, "found \"%s\" after the activation, expected it to be the last word",
                     parser->word);
    if (equals) return set_key(parser, reading, equals);
    if (strchr("0123456789.-+", parser->word[0])) return place_number(parser, reading);
    return read_name(parser, reading);
}

/* "a =" before a layer; without one nothing is read. */
static int read_layer_name(struct parser *parser, char name[LAYER_NAME_BYTES]) {
    const char *const before = parser->at;
    bool there = false;
    RETURN_IF(next_word(parser, '=', &there));
    skip_blanks(parser);
    name[0] = '\0';
    if (parser->at == parser->end || *parser->at != '=') {
        parser->at = before;
        return OK;
    }
    parser->at++;
    if (!layer_name_fits(parser->word))
        return wrong(parser,
                     "found the name \"%s\", expected up to %d letters, digits and _ . - /, and no word that "
                     "means something here",
                     parser->word, LAYER_NAME_BYTES - 1);
    if (find_name(parser->list, parser->list->count, parser->word) != LAYER_INPUT)
        return wrong(parser, "the name \"%s\" is taken by an earlier layer", parser->word);
    memcpy(name, parser->word, strlen(parser->word) + 1);
    return OK;
}

/* What is known only at the end of a layer. */
static int finish_layer(struct parser *parser, struct reading *reading) {
    struct layer *layer = reading->layer;
    const struct layer_row *of = &layer_rows[layer->kind];
    if (of->joins && reading->inputs == 1) {
        layer->input[1] = layer->input[0];
        layer->input[0] = reading->number - 1;
        reading->inputs = 2;
    }
    if (of->joins && reading->inputs == 0)
        return wrong(parser, "%s: found no inputs, expected the names of earlier layers", of->name);
    if (reading->inputs > 0) layer->inputs = reading->inputs;
    for (const struct option *row = of->attributes; row->name; row++)
        if (row->flags & ATTRIBUTE_NEEDED && !(reading->given & 1u << (row - of->attributes)))
            return wrong(parser, "%s: found no %s: expected %s", of->name, row->name, row->help);
    return OK;
}

/* "input 28x28x1", at the word behind `input`. */
static int read_input(struct parser *parser) {
    static const struct option row[] = {
        {.type = OPTION_SIZES, .name = "shape", .sizes = MAX_RANK - 1, .least = 1, .most = 1000000}, {0}};
    struct error why = {0};
    bool there = false;
    if (parser->list->count > 0 || parser->list->input.count > 0)
        return wrong(parser, "input: found it behind the first line, expected it there");
    RETURN_IF(next_word(parser, ' ', &there));
    if (!there) return wrong(parser, "input: found no shape, expected one as in 28x28x1");
    if (option_set(row, &parser->list->input, LAYER_WORD_INPUT, "shape", parser->word, &why) != OK)
        return wrong(parser, "%s", why.words);
    RETURN_IF(next_word(parser, ' ', &there));
    return there ? wrong(parser, "input: found \"%s\" behind its shape", parser->word) : OK;
}

static int read_layer(struct parser *parser) {
    char name[LAYER_NAME_BYTES];
    bool there = false;
    RETURN_IF(read_layer_name(parser, name));
    RETURN_IF(next_word(parser, ' ', &there));
    if (!there && name[0]) return wrong(parser, "found nothing after \"%s =\", expected a layer", name);
    if (!there) return OK;
    if (!name[0] && strcmp(parser->word, LAYER_WORD_INPUT) == 0) return read_input(parser);
    const enum layer_kind kind = layer_named(parser->word);
    struct reading reading = {.number = parser->list->count};
    struct error why = {0};
    if (kind == LAYER_NONE) return unknown_layer(parser);
    reading.layer = layers_add(parser->list, kind, parser->code, &why);
    if (!reading.layer && why.code != parser->code)
        return error_set(parser->error, why.code, "%s", why.words);
    if (!reading.layer) return wrong(parser, "%s", why.words);
    const char *const begin = parser->word_start;
    RETURN_IF(next_word(parser, ' ', &there));
    while (there) {
        RETURN_IF(read_word(parser, &reading));
        RETURN_IF(next_word(parser, ' ', &there));
    }
    parser->word_start = begin;
    RETURN_IF(finish_layer(parser, &reading));
    memcpy(reading.layer->name, name, sizeof name); /* now others may refer to it */
    return OK;
}

int layers_parse(struct layer_list *list, const char *where, const char *text, size_t bytes, int code,
                 struct error *error) {
    struct parser parser = {.list = list,
                            .where = where,
                            .at = text,
                            .end = text + bytes,
                            .line_start = text,
                            .line = 1,
                            .code = code,
                            .error = error};
    *list = (struct layer_list){0};
    int result = OK;
    while (result == OK && parser.at < parser.end) {
        result = read_layer(&parser);
        if (result == OK) end_layer(&parser);
    }
    if (result == OK) result = layers_check(list, where, code, error);
    if (result != OK) layers_close(list);
    return result;
}

/* --- writing --- */

static void write_attributes(const struct layer *layer, struct text *text) {
    const struct option *rows = layer_rows[layer->kind].attributes;
    struct layer_values usual;
    bool in_place = true; /* all placed ones so far are written */
    option_defaults(rows, &usual);
    for (const struct option *row = rows; row->name; row++) {
        char value[WORD_BYTES], default_value[WORD_BYTES];
        option_text(row, &layer->values, value, sizeof value);
        option_text(row, &usual, default_value, sizeof default_value);
        const bool is_placed = row->flags & ATTRIBUTE_PLACED;
        if (strcmp(value, default_value) == 0)
            in_place = in_place && !is_placed;
        else if ((is_placed && in_place) || row->type == OPTION_CHOICE)
            text_add(text, " %s", value);
        else if (row->type == OPTION_FLAG)
            text_add(text, " %s", row->name);
        else
            text_add(text, " %s=%s", row->name, value);
    }
}

static void write_inputs(const struct layer_list *list, int i, struct text *text) {
    const struct layer *layer = &list->layers[i];
    const bool is_usual = layer->input[0] == i - 1;
    if (layer->inputs == 1 && is_usual) return;
    for (int k = layer->inputs == 2 && is_usual ? 1 : 0; k < layer->inputs; k++) {
        const int input = layer->input[k];
        if (input == LAYER_INPUT)
            text_add(text, " " LAYER_WORD_INPUT);
        else
            text_add(text, " %s",
                     list->layers[input].name[0] ? list->layers[input].name : LAYER_WORD_PREVIOUS);
    }
}

void layers_write_one(const struct layer_list *list, int i, struct text *text) {
    const struct layer *layer = &list->layers[i];
    if (layer->name[0]) text_add(text, "%s = ", layer->name);
    text_add(text, "%s", layer_rows[layer->kind].name);
    write_attributes(layer, text);
    write_inputs(list, i, text);
    if (layer->activation != LAYER_NONE) text_add(text, " %s", layer_rows[layer->activation].name);
}

void layers_write(const struct layer_list *list, const char *separator, struct text *text) {
    for (int i = 0; i < list->input.count; i++)
        text_add(text, "%s%d", i > 0 ? "x" : LAYER_WORD_INPUT " ", list->input.at[i]);
    if (list->input.count > 0) text_add(text, "%s", separator);
    for (int i = 0; i < list->count; i++) {
        if (i > 0) text_add(text, "%s", separator);
        layers_write_one(list, i, text);
    }
}
