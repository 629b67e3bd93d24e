/* What a run says before it begins: what is trained, on what, by whom, and where it goes. And --explain. */
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "../bridge/compress.h"
#include "../engine/explain.h"
#include "../graph/model.h"
#include "../record/sentence.h"
#include "open.h"

/* "worker 0 (cpu:0) x1" would say the same twice: threads of this process are named by their devices. */
static void name_worker(const struct run *run, int worker, char *out, size_t bytes) {
    char name[GROUP_NAME_BYTES];
    if (run->crew.elsewhere) {
        snprintf(out, bytes, "%s", run->member[worker].name);
        return;
    }
    setup_worker_name(&run->setup, worker, name);
    snprintf(out, bytes, "%s x%d", name, run->setup.devices[worker].threads);
}

/* As far as there is room, then how many they are. */
static void name_workers(const struct run *run, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    const char *devices = run->setup.config.devices;
    const bool in_ranges = !run->crew.elsewhere && strchr(devices, '-') != NULL;
    if ((run->site.groups || in_ranges) && strlen(devices) + 20 < bytes) {
        text_add(&text, "%s x%d", devices, run->setup.devices[0].threads);
        return;
    }
    for (int w = 0; w < run->workers; w++) {
        char name[MEMBER_NAME_BYTES + 20];
        if (run->member[w].absent) continue;
        name_worker(run, w, name, sizeof name);
        if (text.used + strlen(name) + 25 > bytes) {
            text_add(&text, ", ... %d in all", run->present);
            return;
        }
        text_item(&text, ", ", "%s", name);
    }
}

/* What there is more of than cores. */
static const char *what_shares(const struct setup *setup) {
    const int processes = setup->processes > 1 ? setup->processes : 1;
    struct cores all;
    int cpus = 0;
    world_cores(&all);
    for (int d = 0; d < setup->device_count * setup->group; d++) cpus += !device_apart(&setup->devices[d]);
    return cpus * processes > all.count ? "devices" : "threads";
}

/* Which server holds how much of the weights, where there are several. */
static int say_servers(struct run *run, struct error *error) {
    const int servers = run_servers(run);
    long long *shard_bytes = NULL, *server_bytes = NULL;
    char words[300];
    struct text text = text_into(words, sizeof words);
    if (servers < 2) return OK;
    int code = memory_array(&shard_bytes, run->store.settings.shards_all, "the shards' sizes", error);
    if (code == OK) code = memory_array(&server_bytes, servers, "the servers' sizes", error);
    if (code == OK) code = run_sizes(run, shard_bytes, server_bytes, error);
    sentence_servers(&text, server_bytes, code == OK ? servers : 0);
    if (code == OK) lines_describe(&run->lines, "%s", words);
    memory_free(shard_bytes);
    memory_free(server_bytes);
    return code;
}

/* Which strategies it had, where they were others. */
static void say_resumed(struct run *run) {
    const struct config *config = &run->setup.config;
    struct summary_phase now[SUMMARY_PHASES];
    char so_far[300] = "";
    struct text text = text_into(so_far, sizeof so_far);
    if (!run->resumes || run->epoch >= config->epochs) return; /* which is said when it ends */
    const int count = run_strategies(run, now) - 1;
    for (int p = 0; p < count; p++)
        text_add(&text, "%s%.60s", p > 0 ? ", then " : "; so far ", now[p].strategy);
    lines_describe(&run->lines, "goes on from %s: update %ld, %.1f of %d epochs%s", config->resume,
                   store_updates(&run->store), run_epochs(run), config->epochs, so_far);
}

/* A leader that others wait for when it is lost, or that begins again when they are. */
static void say_restart(struct run *run) {
    const struct config *config = &run->setup.config;
    const long version = store_version(&run->store);
    struct crew_totals totals;
    if (config->restart_wait_s <= 0.0 || !run->crew.elsewhere) return;
    run->crew.totals(run->members, &totals);
    const long lost = totals.seen_before > version ? totals.seen_before - version : 0;
    run->redone_updates =
        lost + (run->resumes ? (long)checkpoint_number(&run->checkpoint, "redone_updates", 0) : 0);
    if (!run->resumes)
        lines_describe(&run->lines, "starts from the beginning: no checkpoint in %s yet", config->out);
    if (lost > 0)
        lines_describe(&run->lines, "%ld update%s since then %s lost, and made again", lost,
                       lost == 1 ? "" : "s", lost == 1 ? "is" : "are");
}

/* What is as the model's recipe says, not the default, and in no other line: " --decay=0.0005"; and its name
 * joins those that are left out of the line of others. */
static void name_recipe(const struct config *config, const struct model *model, struct text *recipe,
                        struct text *without) {
    const char *const said_elsewhere = "epochs,batch,optimizer,schedule";
    for (const struct recipe *said = model->recipe; said && said->option; said++) {
        char value[CONFIG_VALUE_BYTES], usual[CONFIG_VALUE_BYTES];
        struct config only = {0};
        struct error ignored = {0};
        const struct option *row = option_find(config_options, said->option);
        if (!row || !(row->flags & OPTION_SHOWN) || strstr(said_elsewhere, row->name)) continue;
        if (option_set(config_options, &only, "recipe", row->name, said->value, &ignored) != OK) continue;
        option_text(row, &only, usual, sizeof usual);
        option_text(row, config, value, sizeof value);
        if (strcmp(value, usual) != 0) continue;
        text_add(recipe, " --%s=%s", row->name, value);
        text_add(without, ",%s", row->name);
    }
}

/* Not an error: a run that goes on with fewer workers keeps its strategy. */
static void say_clamped(struct run *run) {
    const struct choice *choice = &run->setup.choices.strategy;
    char words[100] = "";
    if (strategy_of(choice)->comes_to)
        strategy_of(choice)->comes_to(choice_settings(choice), run->workers, words, sizeof words);
    if (words[0]) lines_describe(&run->lines, "with %d workers %s", run->workers, words);
}

int run_say_start(struct run *run, struct error *error) {
    const struct setup *setup = &run->setup;
    const struct config *config = &setup->config;
    const struct dataset *dataset = &setup->dataset;
    struct lines *lines = &run->lines;
    char workers[200], sizes[200], homes[200], others[400], held[40] = "", here[24] = "",
                                                            model[MODEL_SHORT_BYTES];
    store_name_homes(&run->store, homes, sizeof homes);
    name_workers(run, workers, sizeof workers);
    if (dataset->validation.count > 0)
        snprintf(held, sizeof held, "%d validation, ", dataset->validation.count);
    lines_describe(lines, "%s (%zu parameters) on %s (%d train, %s%d test examples, %d %s)",
                   model_short(config->model, model), setup->network.graph.layout.parameters, config->dataset,
                   dataset->train.count, held, dataset->test.count, dataset->classes,
                   task_outputs(dataset->task, dataset->classes));
    if (dataset->table[0]) lines_describe(lines, "%s", dataset->table);
    if (run->present < run->workers) snprintf(here, sizeof here, "%d of ", run->present);
    lines_describe(lines, "%s, %s%d worker%s (%s), %d shard%s%s%s", config->strategy, here, run->workers,
                   run->workers == 1 ? "" : "s", workers, setup->shards, setup->shards == 1 ? "" : "s",
                   homes[0] ? " on " : "", homes);
    if (run->phase > 0)
        lines_describe(lines, "goes on under %s, number %d of these strategies", setup->choices.strategy.text,
                       run->phase + 1);
    lines_describe(lines, "batch %s = %d, %d epoch%s, %s, %s, seed %ld",
                   run_name_batch(run, sizes, sizeof sizes), run_batch_total(run), config->epochs,
                   config->epochs == 1 ? "" : "s", config->optimizer, config->schedule, config->seed);
    char recipe[200] = "", without[200], simulated[STEP_TIME_BYTES];
    struct text of_recipe = text_into(recipe, sizeof recipe), out = text_into(without, sizeof without);
    text_add(&out, "model,dataset,strategy,batch,optimizer,schedule,seed,loss,simulate");
    name_recipe(config, model_of(&setup->choices.model), &of_recipe, &out);
    config_unusual(config, OPTION_SHOWN, without, others, sizeof others);
    if (config->weights[0])
        lines_describe(lines, "weights from %s%s%s", config->weights, run->fresh[0] ? "; " : "", run->fresh);
    lines_describe(lines, "loss: %s, with%s L2", loss_words(setup->loss),
                   setup->network.decayed_loss == setup->network.loss ? "out" : "");
    if (recipe[0])
        lines_describe(lines, "with%s, as %s's recipe has it", recipe, setup->choices.model.plugin->name);
    if (others[0]) lines_describe(lines, "with%s", others);
    if (run->store.mean_by[0]) lines_describe(lines, "the mean of a round: %s", run->store.mean_by);
    say_clamped(run);
    if (config->average > 0.0)
        lines_describe(lines, "tested and kept: the moving average of the weights, decay %g",
                       config->average);
    if (step_time_words(&run->step_time, simulated, sizeof simulated)[0])
        lines_describe(lines, "simulated: %s; all times below are virtual", simulated);
    if (setup->cores_shared && !run->crew.elsewhere && !simulated[0])
        lines_describe(lines, "more %s than cores: they share them", what_shares(setup));
    RETURN_IF(say_servers(run, error));
    say_resumed(run);
    say_restart(run);
    lines_say(lines, "logs, model and checkpoint go to %s", config->out);
    lines_flush(lines);
    return OK;
}

/* More workers than an epoch has batches: some have none in it, or an update takes several epochs. */
static void say_idle_workers(struct run *run) {
    const struct config *config = &run->setup.config;
    const long examples = run->setup.dataset.train.count, batch = config->batch;
    const long batches = (examples + batch - 1) / batch;
    if (config->batch_total > 0 || config->data_sharding == SHARDING_ALL || run->workers <= batches) return;
    if (batch > examples || run->workers > examples) return; /* refused, or a smaller one is no help */
    progress_warn(&run->progress,
                  "%d workers, but an epoch has %ld batch%s of %ld: not all of them compute in it; a smaller "
                  "--batch has work for all",
                  run->workers, batches, batches == 1 ? "" : "es", batch);
}

void run_say_idle(struct run *run, const struct typed *typed) {
    const struct config *config = &run->setup.config;
    if (!run->crew.elsewhere && compress_is_on(&run->setup.choices.compressor))
        progress_warn(&run->progress, "--compress=%s does nothing in one process, which sends nothing",
                      config->compress);
    const char *slow = run->resumes ? safetensors_text(&run->checkpoint, "slow") : NULL;
    if (slow && !typed->given.slow)
        progress_warn(&run->progress, "the run had --slow=%s before; without it no device is slow now", slow);
    say_idle_workers(run);
    if (run->led) return;                            /* the leader says the rest */
    if (typed->given.slots && !run_has_servers(run)) /* not for each run of a comparison */
        progress_say(&run->progress,
                     "--slots=%d does nothing under %.200s, whose workers have one gradient under way",
                     config->slots, config->strategy);
    if (run->folder_state == FOLDER_RESUMED && config->replace)
        progress_warn(&run->progress,
                      "--replace replaces nothing: the run in %.200s goes on, as --resume says", config->out);
    if (config->stop_after > config->epochs)
        progress_warn(&run->progress, "--stop-after=%d does nothing: the run has %d epoch%s",
                      config->stop_after, config->epochs, config->epochs == 1 ? "" : "s");
}

int run_explain(struct run *run, struct error *error) {
    const struct setup *setup = &run->setup;
    char homes[200];
    store_name_homes(&run->store, homes, sizeof homes);
    if (homes[0]) printf("shards: %d on %s\n", run->store.settings.shards, homes);
    if (run->store.mean_by[0]) printf("mean of a round: %s\n", run->store.mean_by);
    if (run->crew.elsewhere) return OK;
    if (run->site.groups) return explain_group(run->site.groups, &setup->network, run->world, stdout, error);
    return explain_network(&setup->network, &setup->devices[0], &setup->dataset.train,
                           setup->config.microbatches, run->world, stdout, error);
}
