/* trainer probe: is a process of a cluster there, and how far is it? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../bridge/probe.h"
#include "../bridge/secret.h"
#include "../world/world.h"
#include "command.h"

struct probe_settings {
    char secret_file[PATH_BYTES], tls_cert[PATH_BYTES], tls_key[PATH_BYTES], tls_ca[PATH_BYTES];
    bool insecure;
    double timeout_s;
};

#define ROW(kind, typed, field, ...) OPTION_ROW(kind, typed, struct probe_settings, field, __VA_ARGS__)
static const struct option options[] = {
    ROW(TEXT, "secret-file", secret_file, .value = "FILE",
        .help = "the key of the cluster; also as text in $TRAINER_SECRET"),
    ROW(TEXT, "tls-cert", tls_cert, .value = "FILE", .help = "or a certificate of its CA, in PEM, ..."),
    ROW(TEXT, "tls-key", tls_key, .value = "FILE", .help = "... with its private key ..."),
    ROW(TEXT, "tls-ca", tls_ca, .value = "FILE", .help = "... and the certificate of the CA"),
    ROW(FLAG, "insecure", insecure, .help = "without a key, also where other machines can listen"),
    ROW(REAL, "timeout", timeout_s, .fallback = "5", .least = 0.1, .most = 1e6, .unit = "s",
        .help = "how long to wait until somebody is there, and answers"),
    {0}};
#undef ROW

/* The same settings as `trainer train` has them. */
static int find_secret(struct secret *secret, struct config *config, const struct probe_settings *settings,
                       struct error *error) {
    option_defaults(config_options, config);
    memcpy(config->secret_file, settings->secret_file, sizeof config->secret_file);
    memcpy(config->tls_cert, settings->tls_cert, sizeof config->tls_cert);
    memcpy(config->tls_key, settings->tls_key, sizeof config->tls_key);
    memcpy(config->tls_ca, settings->tls_ca, sizeof config->tls_ca);
    return secret_find(secret, config, getenv(SECRET_VARIABLE), error);
}

static int ask(const char *address, const struct secret *secret, const struct probe_settings *settings,
               struct error *error) {
    struct world *world = NULL;
    char words[PROBE_BYTES];
    RETURN_IF(world_open_threads(&world, error));
    int code = secret_use(secret, settings->insecure, world, error);
    if (code == OK) code = probe_host(world, address, settings->timeout_s, words, error);
    if (code == OK) printf("%s: %s\n", address, words);
    world_close(world);
    return code;
}

static int run(const void *given, const char *const *arguments, int argument_count, struct error *error) {
    const struct probe_settings *settings = given;
    struct config *config = NULL;
    struct secret secret;
    if (argument_count != 1)
        return error_set(error, ERROR_USAGE, "probe: expected one HOST:PORT, found %d", argument_count);
    RETURN_IF(memory_array(&config, 1, "the settings", error));
    int code = find_secret(&secret, config, settings, error);
    if (code == OK) code = ask(arguments[0], &secret, settings, error);
    memory_free(config);
    return code;
}

const struct command command_probe = {
    .plugin = {.name = "probe",
               .help = "ask a process of a cluster whether it is there, and how far it is",
               .options = options,
               .settings_bytes = sizeof(struct probe_settings)},
    .arguments = "HOST:PORT",
    .examples = "trainer probe 127.0.0.1:2222\n"
                "# exit code 0: it answers; 5: nobody does, or it is none\n"
                "trainer probe trainer-0.trainer:2222 --secret-file=cluster.key --timeout=2\n",
    .run = run,
};
