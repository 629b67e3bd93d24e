/* `trainer train` as a program of one's own: settings as NAME=VALUE, on its command line. It prints what the
 * program prints, writes what it writes, and ends with a checkpoint on Ctrl-C. */
#include <stdio.h>
#include <string.h>
#include <trainer.h>

/* "epochs=3" */
static int set(struct trainer_training *training, const char *setting, struct trainer_error *error) {
    const char *value = strchr(setting, '=');
    char name[64];
    snprintf(name, sizeof name, "%.*s", value ? (int)(value - setting) : 63, setting);
    return trainer_training_set(training, name, value ? value + 1 : "1", error);
}

int main(int argc, char **argv) {
    struct trainer_training *training = NULL;
    struct trainer_error error = {0};
    int code = trainer_training_open(&training, &error);
    if (code == TRAINER_OK) trainer_training_as_program(training);
    for (int i = 1; i < argc && code == TRAINER_OK; i++) code = set(training, argv[i], &error);
    if (code == TRAINER_OK) code = trainer_training_run(training, NULL, &error);
    if (code != TRAINER_OK) fprintf(stderr, "program: %s\n", error.words);
    trainer_training_close(training);
    return code;
}
