/* trainer ensemble: several networks, each trained on a device, which say together what an example is. */
#include "../base/memory.h"
#include "../compare/ensemble.h"
#include "../world/world.h"
#include "command.h"

static int typed_member(void *settings, char *text, size_t bytes, struct error *error) {
    (void)bytes;
    return ensemble_add(settings, text, error);
}

static const struct option rows[] = {
    OPTION_ROW(INT, "members", struct ensemble_settings, members, .fallback = "0", .least = 0,
               .most = ENSEMBLE_MEMBERS, .unit = "members",
               .help =
                   "how many (0: one for each --member, else one for each device); each has the next seed"),
    OPTION_ROW(TEXT, "member", struct ensemble_settings, member, .value = "SETTINGS", .typed = typed_member,
               .help = "what a member has for itself, once for each: 'model=cnn optimizer.rate=0.1'; further "
                       "members begin with the first again"),
    OPTION_ROW(TEXT, "out", struct ensemble_settings, run.value.out,
               .given = offsetof(struct ensemble_settings, run.given.out), .value = "DIR",
               .help = "folder for ensemble.csv and the members (default runs/TIME-MODEL-ensemble)"),
    OPTION_ROW(TEXT, "resume", struct ensemble_settings, run.value.resume,
               .given = offsetof(struct ensemble_settings, run.given.resume), .value = "DIR",
               .help = "go on with the ensemble in this folder; nothing else needs to be given"),
    OPTION_ROW(FLAG, "quiet", struct ensemble_settings, run.value.quiet,
               .given = offsetof(struct ensemble_settings, run.given.quiet),
               .help = "print only the results, no progress"),
    {0},
};

static const struct refusal refused[] = {
    {"replace", "an ensemble begins in a folder of its own"},
    {"stop-after", "trainer --stop-after ends a single run"},
    {"data-slice", "--data-sharding=split gives each member a slice"},
    {"export", "trainer export writes a member's network"},
    {"print-every", "the members of an ensemble print no steps"},
    {"simulate", "a member of an ensemble has one device, and trains in real time"},
    {"group", "a member of an ensemble has one device"},
    {"place", "a member of an ensemble has one device"},
    {"explain", "trainer train --explain shows what a device computes"},
    {"job", "an ensemble is made in one process"},
    {"task", "an ensemble is made in one process"},
    {"ps-hosts", "an ensemble is made in one process"},
    {"worker-hosts", "an ensemble is made in one process"},
    {"cluster", "an ensemble is made in one process"},
    {"hosts", "an ensemble is made in one process"},
    {"ps", "an ensemble is made in one process"},
    {"workers", "an ensemble is made in one process"},
    {"port", "an ensemble is made in one process"},
    {"launcher", "an ensemble is made in one process"},
    {"ssh", "an ensemble is made in one process"},
    {"secret-file", "an ensemble is made in one process"},
    {"tls-cert", "an ensemble is made in one process"},
    {"tls-key", "an ensemble is made in one process"},
    {"tls-ca", "an ensemble is made in one process"},
    {"insecure", "an ensemble is made in one process"},
    {"link", "an ensemble is made in one process"},
    {"shared-memory", "an ensemble is made in one process"},
    {"overlap", "an ensemble is made in one process"},
    {"start-timeout", "an ensemble is made in one process"},
    {"restart-wait", "an ensemble that was killed goes on by --resume"},
    {0},
};

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    struct ensemble_run *ensemble = NULL;
    (void)arguments, (void)argument_count;
    RETURN_IF(memory_array(&ensemble, 1, "the ensemble", error));
    int code = ensemble_begin(ensemble, settings, error);
    if (code == OK) code = ensemble_train(ensemble, error);
    if (code == OK) {
        const struct page page = page_on(stdout);
        world_end_at_interrupt(); /* a reader may stand still */
        code = ensemble_print(ensemble, &page, error);
    }
    ensemble_end(ensemble);
    memory_free(ensemble);
    return code;
}

const struct command command_ensemble = {
    .plugin = {.name = "ensemble",
               .help = "train several networks, one per device, and combine their predictions",
               .options = rows,
               .settings_bytes = sizeof(struct ensemble_settings)},
    .shared_options = run_options,
    .refused = refused,
    .examples = "# four seeds\n"
                "trainer ensemble --members=4 --epochs=20 --out=runs/four\n"
                "trainer evaluate --checkpoint=runs/four\n"
                "# one that was killed goes on\n"
                "trainer ensemble --resume=runs/four\n"
                "# different networks, each on its slice of the data\n"
                "trainer ensemble --member=model=mlp:hidden=40 --member='model=softmax batch=64' "
                "--data-sharding=split --epochs=20\n",
    .run = run,
};
