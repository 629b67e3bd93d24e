/* A run opened, from settings to waiting workers, and closed in reverse order. */
#include <string.h>

#include "../base/file.h"
#include "../base/text.h"
#include "../bridge/compress.h"
#include "../graph/model.h"
#include "open.h"

/* --- what is to be done --- */

/* A plug-in that the checkpoint names, and not the command line: what is wrong with it is wrong with the
 * file. */
static int check_choices(const struct run *run, const struct typed *typed, struct error *error) {
    const struct config *config = &run->setup.config;
    const struct given *given = &typed->given;
    const struct {
        bool typed;
        const struct plugin_kind *kind;
        const char *text;
    } choices[] = {{given->model, &model_kind, config->model},
                   {given->dataset || run->setup.own_dataset, &dataset_kind, config->dataset},
                   {given->optimizer, &optimizer_kind, config->optimizer},
                   {given->schedule, &schedule_kind, config->schedule},
                   {given->compress, &compressor_kind, config->compress}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct choice choice;
        struct error why = {0};
        if (!choices[i].typed && plugin_choose(&choice, choices[i].kind, choices[i].text, &why) != OK)
            return error_set(error, ERROR_FILE, "%s: %s", config->resume, why.words);
    }
    struct error why = {0};
    const bool own = run->setup.own_strategy || given->strategy;
    return run_blame(own ? OK : phases_check(config->strategy, &why), run, false, &why, error);
}

/* What is predicted is known when the data set is there. */
static int take_values_optimizer(struct run *run, const struct typed *typed, struct error *error) {
    struct setup *setup = &run->setup;
    const char *text = model_of(&setup->choices.model)->values_optimizer;
    if (run->resumes || typed->given.optimizer || setup->dataset.task != TASK_VALUES || !text) return OK;
    snprintf(setup->config.optimizer, sizeof setup->config.optimizer, "%s", text);
    return plugin_choose(&setup->choices.optimizer, &optimizer_kind, text, error);
}

/* The same of what shows only when data set and model are there. */
static int open_network(struct run *run, const struct typed *typed, struct error *error) {
    struct error why = {0};
    const struct setup *setup = &run->setup;
    int code = setup_open_network(&run->setup, &why);
    if (code == OK && run->resumes)
        code = resume_fits(&run->checkpoint, setup->config.resume, &setup->choices.model, &setup->dataset,
                           &setup->network.graph.layout, &why);
    if (code == OK) return take_values_optimizer(run, typed, error);
    if (code == ERROR_USAGE && run->resumes && !typed->given.model && !typed->given.dataset)
        return error_set(error, ERROR_FILE, "%s: %s", run->setup.config.resume, why.words);
    return error_set(error, code, "%s", why.words);
}

/* What is said of an output that nobody chose would be lost. */
static int check_chosen(const struct config *config, const struct typed *typed, struct error *error) {
    const struct given *given = &typed->given;
    const struct {
        const char *option, *output;
        bool given;
    } rows[] = {{"trace", "trace", given->trace},
                {"scalars", "tensorboard", given->scalars},
                {"histograms", "tensorboard", given->histograms}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].given && !output_is_chosen(config->outputs, rows[i].output))
            return error_set(error, ERROR_USAGE, "--%s: found --outputs=%.200s, expected %s among them",
                             rows[i].option, config->outputs, rows[i].output);
    return OK;
}

int run_blame(int code, const struct run *run, bool typed, const struct error *why, struct error *error) {
    if (code == OK) return OK;
    if (typed || !run->resumes || code == ERROR_DEVICE) return error_set(error, code, "%s", why->words);
    return error_set(error, ERROR_FILE, "%s: %s", run->setup.config.resume, why->words);
}

static int check_microbatches(const struct run *run, const struct typed *typed, struct error *error) {
    struct error why = {0};
    const int code = config_check_microbatches(&run->setup.config, &why);
    return run_blame(code, run,
                     typed->given.batch || typed->given.batch_total || typed->given.microbatches ||
                         typed->given.schedule_pipeline,
                     &why, error);
}

static int check_outputs(const struct run *run, const struct typed *typed, struct error *error) {
    const struct config *config = &run->setup.config;
    struct error why = {0};
    long first, every;
    int code = telling_check(config->outputs, &why);
    RETURN_IF(run_blame(code, run, typed->given.outputs, &why, error));
    code = config_trace(config, &first, &every, &why);
    RETURN_IF(run_blame(code, run, typed->given.trace, &why, error));
    return check_chosen(config, typed, error);
}

/* What was typed, then what the checkpoint says or, of a run that begins, the model's recipe, then the
 * defaults. A checkpoint has all rows that the program which wrote it knew. */
static int settle(struct run *run, const struct typed *typed, struct error *error) {
    const char *path = typed->value.resume;
    struct config_source source = resume_source(&run->checkpoint, path);
    run->resumes = path[0] != '\0';
    if (run->resumes && typed->given.weights)
        return error_set(error, ERROR_USAGE,
                         "--resume and --weights: expected one of them, both say where to start");
    struct config *config = &run->setup.config;
    if (run->resumes) {
        RETURN_IF(checkpoint_read(path, &run->checkpoint, error));
        RETURN_IF(resume_check(&run->checkpoint, path, error));
        if (!typed->given.dataset && !run->setup.own_dataset)
            RETURN_IF(resume_check_data(&run->checkpoint, path, error));
        RETURN_IF(run_check_simulated(run, typed, error));
        run->seconds_before = checkpoint_real(&run->checkpoint, "train_seconds", 0.0);
        run->best = resume_best(&run->checkpoint);
        RETURN_IF(config_settle(config, typed, &source, OPTION_SAVED | OPTION_RESUMED, ERROR_FILE, error));
        config_choose_test(config, typed);
        RETURN_IF(check_choices(run, typed, error));
        config->weights[0] = '\0'; /* those of a network's file */
    } else {
        RETURN_IF(config_begin(config, typed, error));
    }
    RETURN_IF(config_choose_batch(config, typed, error));
    RETURN_IF(check_microbatches(run, typed, error));
    RETURN_IF(run_check_share(run, typed, error));
    RETURN_IF(check_outputs(run, typed, error));
    const struct format *format = NULL;
    if (config->export_to[0]) RETURN_IF(export_format(&format, config->export_to, error));
    return OK;
}

/* Where its files go, unless it was said: where the resumed run was, or runs/<time>-<model>-<strategy>. */
static int name_folder(struct run *run, struct error *error) {
    struct config *config = &run->setup.config;
    const struct choices *choices = &run->setup.choices;
    char place[PATH_BYTES];
    checkpoint_run(config->resume, place);
    if (run->resumes && !config->out[0] && checkpoint_is_best(place))
        return error_set(error, ERROR_USAGE,
                         "--resume=%.200s: the best epoch of a run goes on in another folder, expected "
                         "--out=FOLDER too",
                         config->resume);
    run->folder_named = config->out[0] || run->resumes;
    if (run->silent && !run->folder_named) return OK; /* it leaves nothing */
    if (config->out[0]) return OK;
    if (!run->resumes)
        return folder_name(config->out, choices->model.plugin->name, choices->strategy.plugin->name, error);
    checkpoint_run(config->resume, config->out);
    return OK;
}

static int claim_folder(struct run *run, struct error *error) {
    struct config *config = &run->setup.config;
    if (!run_keeps(run)) return OK;
    RETURN_IF(export_check_free(config->export_to, config->replace, error));
    const struct folder_settings folder = {
        .named = run->folder_named, .replace = config->replace, .resume = config->resume};
    run->folder_existing = file_existing(config->out);
    RETURN_IF(folder_open(config->out, &folder, &run->folder, &run->folder_state, error));
    if (run->folder_state != FOLDER_RESUMED) run->best = (struct best_epoch){0}; /* it stayed where it was */
    return export_folder(config->export_to, error);                              /* its own is there by now */
}

/* --- who does it --- */

static void say_words(void *argument, const char *words) {
    struct run *run = argument;
    if (words[0] != '\0') progress_say(&run->progress, "%s", words);
}

/* Where all cores compute, a prefetcher could only take time from a worker; and handing a batch over takes
 * longer than building a small one. Measured on two cores: 8 KB, four times slower; 313 KB, 2 % faster. A
 * device with memory of its own builds a batch there, from numbers that are queued: beside it a prefetcher
 * would only wait once more per batch. */
enum { FEED_BYTES = 1 << 18 };

static int choose_prefetch(const struct run *run) {
    const struct setup *setup = &run->setup;
    if (run->crew.elsewhere) return 0; /* the workers build their batches */
    if (setup->config.prefetch != PREFETCH_AUTO) return setup->config.prefetch;
    if (setup->config.simulate[0]) return 0; /* getting a batch takes no virtual time */
    const size_t numbers = (size_t)setup->config.batch * (size_t)setup->dataset.train.features;
    struct cores all;
    int computing = 0;
    if (numbers * sizeof(float) < FEED_BYTES) return 0;
    world_cores(&all);
    for (int d = 0; d < setup->device_count * setup->group; d++) {
        if (device_apart(&setup->devices[d])) return 0;
        computing += setup->devices[d].threads;
    }
    return all.count > computing ? 1 : 0;
}

/* Of workers elsewhere no more is known than their names. */
static int list_devices(const struct run *run, int worker, char **list, struct error *error) {
    const struct setup *setup = &run->setup;
    struct text text = text_growing(error);
    if (run->crew.elsewhere)
        text_add(&text, "%s", run->device_names[worker]);
    else
        groups_join(&text, setup->devices, setup->device_count, setup->group, worker);
    *list = text.bytes;
    return text_end(&text);
}

static int open_crew(struct run *run, struct error *error) {
    struct setup *setup = &run->setup;
    run->network_settings = setup_network_settings(setup);
    run->site = (struct crew_site){.world = run->world,
                                   .config = &setup->config,
                                   .dataset = &setup->dataset,
                                   .network = &setup->network,
                                   .network_settings = &run->network_settings,
                                   .devices = setup->devices,
                                   .device_count = setup->device_count,
                                   .groups = setup_groups(setup, run->world, &run->groups),
                                   .store = &run->store,
                                   .sampler = &run->sampler,
                                   .roster = &run->roster,
                                   .traits = run_traits(run),
                                   .prefetch = choose_prefetch(run),
                                   .say = say_words,
                                   .argument = run};
    RETURN_IF(run->crew.open(&run->members, run->crew.settings, &run->site, &run->workers, error));
    RETURN_IF(memory_array(&run->member, run->workers, "the workers", error));
    RETURN_IF(memory_array(&run->device_names, run->workers, "device names", error));
    RETURN_IF(memory_array(&run->device_lists, run->workers, "device names", error));
    RETURN_IF(memory_array(&run->cores, run->workers, "cores", error));
    for (int w = 0; w < run->workers; w++) {
        struct crew_member *member = &run->member[w];
        run->crew.member(run->members, w, member);
        run->device_names[w] = member->device;
        if (member->cores) run->cores[w] = *member->cores;
        RETURN_IF(list_devices(run, w, &run->device_lists[w], error));
    }
    return OK;
}

static int open_roster(struct run *run, struct error *error) {
    int servers = 0;
    for (int p = 0; p < run->setup.phases.count; p++) {
        const int wants =
            training_servers(&run->setup.phases.list[p].strategy, run_shards_here(run), run->workers);
        if (wants > servers) servers = wants;
    }
    RETURN_IF(
        roster_open(&run->roster, run->world, run->workers, servers, run->setup.config.timeout_s, error));
    for (int w = 0; w < run->workers; w++)
        memcpy(run->roster.members[w].name, run->member[w].name, sizeof run->member[w].name);
    RETURN_IF(memory_array(&run->lost, run->workers, "who was lost", error));
    run_note_absent(run);
    return OK;
}

/* Where there are several devices, all of them test: an evaluator for each, but one for two replicas on one
 * GPU. In the simulated world one is enough, whose threads are no part of what is simulated. */
static int open_evaluators(struct run *run, const struct network_settings *settings, struct error *error) {
    const struct setup *setup = &run->setup;
    const int all = setup->device_count * setup->group;
    struct device *devices = NULL;
    int count = 0;
    RETURN_IF(memory_array(&devices, all, "devices that evaluate", error));
    for (int d = 0; d < all; d++) {
        int same = 0;
        while (same < count && strcmp(devices[same].name, setup->devices[d].name) != 0) same++;
        if (same == count) devices[count++] = setup->devices[d];
    }
    int code = OK;
    if (count > 1 && !world_is_simulated(run->world))
        code = evaluators_open(&run->evaluators, run->world, settings, &setup->dataset.units, devices, count,
                               error);
    memory_free(devices);
    return code;
}

/* What tests alone, or predicts, has all the cores of the run's devices for itself. */
static int open_evaluator(struct run *run, struct error *error) {
    const struct setup *setup = &run->setup;
    const struct network_settings settings = setup_network_settings(setup);
    struct device device = setup->devices[0];
    device.threads = 0;
    for (int d = 0; d < setup->device_count * setup->group; d++) device.threads += setup->devices[d].threads;
    struct cores all;
    world_cores(&all);
    if (device.threads > all.count) device.threads = all.count;
    RETURN_IF(evaluator_open(&run->evaluator, &settings, &device, error));
    RETURN_IF(open_evaluators(run, &settings, error));
    if (run->evaluators.count == 0) RETURN_IF(evaluator_compile(&run->evaluator, error));
    run->evaluator.units = setup->dataset.units;
    return views_check((enum views)setup->config.views, setup->dataset.task, &setup->dataset.test, error);
}

/* What is wrong whoever takes part: said before anybody is waited for. */
static int check_typed(struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    struct faults faults;
    RETURN_IF(faults_parse(&faults, config->fail, config->stall, config->slow, error));
    RETURN_IF(setup_check_simulated(config, &run->step_time, error));
    if (config_may_be_joined(config) && !run->crew.admit)
        return error_set(error, ERROR_USAGE, "--workers=%s: expected a cluster, whose workers may join it",
                         config->workers);
    if (run->crew.elsewhere && !run->led && config->weights[0])
        return run_check_weights(config->weights, error);
    return OK;
}

static int open_faults(struct run *run, struct faults *faults, struct error *error) {
    const struct config *config = &run->setup.config;
    const int servers = run->roster.count - run->roster.workers;
    RETURN_IF(faults_parse(faults, config->fail, config->stall, config->slow, error));
    RETURN_IF(faults_check(faults, (const char *const *)run->device_lists, run->workers, servers, error));
    RETURN_IF(memory_array(&run->slowness, run->workers, "the workers' slowness", error));
    for (int w = 0; w < run->workers; w++) run->slowness[w] = faults_factor(faults, run->device_lists[w]);
    return OK;
}

/* --- what is left of it --- */

static int open_spans(struct run *run, struct error *error) {
    long first, every;
    RETURN_IF(config_trace(&run->setup.config, &first, &every, error));
    RETURN_IF(trace_open(&run->trace, first, every, error));
    run->roster.trace = run->trace;
    return OK;
}

/* What an earlier run left in the folder makes room. */
static int clear_folder(struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    if (!run_keeps(run)) return OK;
    if (run->folder_state == FOLDER_EARLIER)
        progress_say(&run->progress, "%s has an earlier run, which this one replaces at its first checkpoint",
                     config->out);
    if (run->folder_state == FOLDER_EARLIER) RETURN_IF(folder_set_aside(config->out, error));
    run->replaces = run->folder_state == FOLDER_EARLIER;
    return run->folder_state == FOLDER_UNUSED ? folder_keep_logs(config->out, error) : OK;
}

static int open_output(struct run *run, struct error *error) {
    const struct config *config = &run->setup.config;
    const struct embedding *embedding = run->embedding;
    RETURN_IF(clear_folder(run, error));
    run->scene = (struct output_scene){.folder = run_keeps(run) ? config->out : NULL,
                                       .embedder = embedding ? embedding->self : NULL,
                                       .config = config,
                                       .dataset = &run->setup.dataset,
                                       .graph = &run->setup.network.graph,
                                       .workers = run->workers,
                                       .shards = run->store.settings.shards_all,
                                       .devices = run->device_names,
                                       .roster = &run->roster,
                                       .goes_on = run->folder_state == FOLDER_RESUMED,
                                       .seconds_before = run->seconds_before,
                                       .epochs_before = run->epoch,
                                       .steps_before = run->steps_of_before,
                                       .others_step = run->crew.elsewhere,
                                       .lines = config->quiet || run->led ? NULL : &run->lines};
    RETURN_IF(run_tell_open(run, error));
    RETURN_IF(telling_open(&run->telling, run_keeps(run) ? config->outputs : "none", &run->scene,
                           &run->progress, error));
    if (embedding && embedding->output)
        RETURN_IF(telling_add(&run->telling, embedding->output, &run->scene, error));
    RETURN_IF(log_open(&run->log, run->workers, &run->telling, error));
    return telling_wants_spans(&run->telling) ? open_spans(run, error) : OK;
}

/* --- all of it --- */

/* Where all step together, one who is missing is missed, unless he may come again. */
bool run_goes_on(const struct run *run) {
    const int on_loss = run->setup.config.on_loss;
    return on_loss == ON_LOSS_CONTINUE ||
           (on_loss == ON_LOSS_AUTO && (!run_traits(run)->rounds || run_may_be_joined(run)));
}

static int open_training(struct run *run, const struct faults *faults, struct error *error) {
    const bool elsewhere = run->crew.elsewhere;
    struct training_settings training = {.world = run->world,
                                         .roster = &run->roster,
                                         .store = &run->store,
                                         .strategy = &run->setup.choices.strategy,
                                         .sampler = &run->sampler,
                                         .log = run->led || run->nothing_left ? NULL : &run->log,
                                         .devices = elsewhere ? NULL : run->setup.devices,
                                         .cores = elsewhere ? NULL : run->cores,
                                         .seconds_before = run->seconds_before,
                                         .steps_before = run->steps_of_before,
                                         .go_on = run_goes_on(run),
                                         .ending_s = ENDING_S,
                                         .faults = *faults,
                                         .step_time = run->step_time,
                                         .guess_loss = run_guess_loss(run),
                                         .clip = elsewhere ? 0.0f : config_clip(&run->setup.config),
                                         .prefetch = run->site.prefetch,
                                         .batch_most = run_batch_most(run)};
    if (faults->slow_count > 0) training.slowness = run->slowness;
    RETURN_IF(run->crew.compute(run->members, &training.compute, error));
    RETURN_IF(training_open(&run->training, &training, error));
    if (run->crew.begin) RETURN_IF(run->crew.begin(run->members, error));
    const struct phase_change change = run_tells_change(run);
    /* What followers do not know: how far the run is, and so where parts of a batch end it. */
    const bool begun = run->phase > 0 || change.schedule_ahead != 0 || (run->resumes && run->sizes);
    return begun && !run->led && run->crew.change ? run->crew.change(run->members, &change, error) : OK;
}

int run_open(struct run *run, const struct typed *typed, struct error *error) {
    struct setup *setup = &run->setup;
    struct faults faults;
    setup->embedded = run->silent;
    setup->own_dataset = run->embedding ? run->embedding->dataset : NULL;
    setup->own_strategy = run->embedding ? run->embedding->strategy : NULL;
    RETURN_IF(settle(run, typed, error));
    RETURN_IF(setup_choose(setup, run->crew.parts, run->crew.mirrored, error));
    RETURN_IF(run_choose_validation(run, typed, error));
    RETURN_IF(resume_model(&run->checkpoint, setup->config.resume, &setup->choices.model, error));
    RETURN_IF(check_typed(run, error));
    RETURN_IF(name_folder(run, error));
    RETURN_IF(setup_open_devices(setup, error));
    RETURN_IF(setup_check_simulated_devices(setup, error));
    if (setup->config.batch_total > 0) /* of a cluster it is not known yet how many they are */
        setup->config.batch = config_part(&setup->config, run->crew.elsewhere ? 1 : setup->device_count);
    RETURN_IF(open_network(run, typed, error));
    if (!run->led) RETURN_IF(claim_folder(run, error)); /* before anybody is waited for */
    if (!run->crew.elsewhere) {
        if (setup_measures(setup))
            progress_say(&run->progress, "--place=auto: measuring the devices of a group");
        const int code = setup_place(setup, run->world, true, error);
        run->training.abandoned = setup->balanced.abandoned;
        RETURN_IF(code);
    }
    RETURN_IF(open_crew(run, error));
    run_say_idle(run, typed);
    RETURN_IF(open_roster(run, error));
    RETURN_IF(run_check_epochs(run, typed->given.epochs, error));
    RETURN_IF(run_open_share(run, typed, error));
    RETURN_IF(run_open_sampler(run, typed, error));
    RETURN_IF(run_open_steps(run, error));
    while (run->epoch < setup->config.epochs && sampler_reached(&run->sampler, run->epoch)) run->epoch++;
    RETURN_IF(run_open_phase(run, error));
    RETURN_IF(run_open_store(run, error));
    RETURN_IF(open_evaluator(run, error));
    RETURN_IF(open_faults(run, &faults, error));
    run->nothing_left = run_is_over(run);
    if (!run->led && !run->nothing_left) {
        RETURN_IF(export_rehearse(setup->config.export_to, &run->evaluator.pass[EVALUATE_WHOLE].network,
                                  &setup->dataset.units, error));
        RETURN_IF(open_output(run, error));
        RETURN_IF(run_say_start(run, error));
    }
    if (setup->config.explain) RETURN_IF(run_explain(run, error));
    return open_training(run, &faults, error);
}

void run_close(struct run *run) {
    struct error ignored = {0};
    if (run->training.abandoned) return; /* while its layers were placed */
    if (run->training.settings.world) {
        world_stop(run->world);
        training_end(&run->training, &ignored);
        if (run->training.abandoned) return; /* a thread that hangs may still use any of it */
        if (!run->crew.close(run->members)) {
            run->training.abandoned = true;
            return;
        }
        run->members = NULL;
        training_close(&run->training);
    }
    progress_clear(&run->progress);
    telling_close(&run->telling);
    trace_close(run->trace);
    log_close(&run->log);
    if (run->replaces) folder_put_back(run->setup.config.out, &ignored);
    file_release(run->folder);
    if (run->folder) file_remove_empty(run->setup.config.out, run->folder_existing); /* it came to nothing */
    run->crew.close(run->members);
    probe_close(&run->probe);
    evaluators_close(&run->evaluators);
    evaluator_close(&run->evaluator);
    run_tell_close(run);
    store_close(&run->store);
    sampler_close(&run->sampler);
    roster_close(&run->roster);
    memory_free(run->cores);
    for (int w = 0; run->device_lists && w < run->workers; w++) memory_free(run->device_lists[w]);
    memory_free(run->device_lists);
    memory_free((void *)run->device_names);
    memory_free(run->member);
    memory_free(run->steps_of_before);
    memory_free(run->steps_of);
    memory_free(run->sizes);
    memory_free(run->slowness);
    memory_free(run->lost);
    memory_free(run->joins);
    setup_close(&run->setup);
    safetensors_free(&run->checkpoint);
}
