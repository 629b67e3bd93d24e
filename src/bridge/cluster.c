/* The cluster, read strictly: from lists of hosts, from a file, from TF_CONFIG. File and TF_CONFIG are the
 * same kind of text, so both are read as a `struct document`, which has the name and the error code for
 * messages. */
#include "cluster.h"

#include <string.h>
#include <strings.h>

#include "../base/json.h"
#include "../base/memory.h"
#include "../world/world.h"

enum { FILE_BYTES_MOST = 1 << 20, WHERE_BYTES = PATH_BYTES + 64 };

/* Where addresses or a task come from, as the words name it, and the code of an error there. */
struct source {
    const char *name; /* "cluster" for the options, a path, "TF_CONFIG"; NULL: nothing was given */
    int code;
};

/* A JSON text that may have a cluster, a task or both. */
struct document {
    struct source source;
    struct json json;
    const struct json_value *cluster, *task; /* in json; NULL: it has none */
};

/* The job and the task of this process; `said_*` is how that was said, for the words. */
struct own_task {
    const char *job; /* NULL: not given */
    int index;       /* -1: not given */
    int job_code, index_code;
    char said_job[WHERE_BYTES], said_index[WHERE_BYTES];
};

/* --- JSON --- */

static const char *kind_name(enum json_kind kind) {
    const char *const names[] = {
        [JSON_NULL] = "null",   [JSON_BOOL] = "true or false", [JSON_NUMBER] = "a number",
        [JSON_TEXT] = "a text", [JSON_ARRAY] = "an array",     [JSON_OBJECT] = "an object"};
    return names[kind];
}

static int expect_kind(const struct json_value *value, enum json_kind kind, const char *expected,
                       const struct source *source, const char *where, struct error *error) {
    if (value->kind == kind) return OK;
    return error_set(error, source->code, "%s: %sfound %s, expected %s", source->name, where,
                     kind_name(value->kind), expected);
}

/* What Kubeflow says to a TFJob with enableDynamicWorker: each worker its own address and the ps, a ps its
 * own alone. Nobody can know from it how many workers there are. */
static int refuse_sparse(const struct source *source, struct error *error) {
    return error_set(error, source->code,
                     "%s: a sparse cluster, whose workers may come and go, is not understood; expected all "
                     "addresses: a TFJob without enableDynamicWorker",
                     source->name);
}

/* `flat`: a text without "cluster" is the cluster itself. */
static int parse_document(struct document *document, const char *text, size_t bytes, bool flat,
                          struct error *error) {
    const struct source *source = &document->source;
    struct error found = {0};
    const int code = json_parse(&document->json, text, bytes, &found);
    if (code != OK)
        return error_set(error, code == ERROR_FILE ? source->code : code, "%s: %s", source->name,
                         found.words);
    const struct json_value *root = &document->json.values[0];
    RETURN_IF(expect_kind(root, JSON_OBJECT, "an object that has cluster and task", source, "", error));
    if (json_member(&document->json, root, "sparseCluster") != NULL) return refuse_sparse(source, error);
    document->cluster = json_member(&document->json, root, "cluster");
    if (document->cluster == NULL && flat)
        document->cluster = root;
    else
        document->task = json_member(&document->json, root, "task");
    if (document->cluster != NULL)
        RETURN_IF(expect_kind(document->cluster, JSON_OBJECT, "an object that has ps, worker and chief",
                              source, "cluster: ", error));
    if (document->task != NULL)
        RETURN_IF(expect_kind(document->task, JSON_OBJECT, "an object that has type and index", source,
                              "task: ", error));
    return OK;
}

static int read_file(struct document *document, const char *path, struct error *error) {
    char *text = NULL;
    size_t bytes;
    document->source = (struct source){path, ERROR_FILE};
    int code = file_read(path, FILE_BYTES_MOST, &text, &bytes, error);
    if (code == OK) code = parse_document(document, text, bytes, true, error);
    memory_free(text);
    return code;
}

/* The addresses of one job of a document; none when it does not have the job. */
static int add_job(struct addresses *addresses, const struct document *document, const char *job,
                   struct error *error) {
    const struct json *json = &document->json;
    const struct source *source = &document->source;
    const struct json_value *list = json_member(json, document->cluster, job);
    char where[WHERE_BYTES];
    if (list == NULL) return OK;
    if (list->kind == JSON_OBJECT && list->children > 0) return refuse_sparse(source, error);
    snprintf(where, sizeof where, "cluster: %s: ", job);
    RETURN_IF(expect_kind(list, JSON_ARRAY, "an array of \"host:port\"", source, where, error));
    for (int i = list->first, index = 0; i >= 0; i = json->values[i].next, index++) {
        snprintf(where, sizeof where, "cluster: %s %d: ", job, index);
        RETURN_IF(expect_kind(&json->values[i], JSON_TEXT, "\"host:port\"", source, where, error));
        const char *text = json->values[i].text;
        snprintf(where, sizeof where, "%s: cluster: %s %d", source->name, job, index);
        RETURN_IF(addresses_add(addresses, text, strlen(text), where, source->code, error));
    }
    return OK;
}

static int add_jobs(struct cluster *cluster, const struct document *document, struct error *error) {
    const struct json *json = &document->json;
    const struct source *source = &document->source;
    for (int i = document->cluster->first; i >= 0; i = json->values[i].next) {
        const char *job = json->values[i].name;
        if (strcmp(job, "ps") != 0 && strcmp(job, "worker") != 0 && strcmp(job, "chief") != 0)
            return error_set(error, source->code, "%s: cluster: job \"%.40s\", expected ps, worker or chief",
                             source->name, job);
    }
    RETURN_IF(add_job(&cluster->ps, document, "ps", error));
    RETURN_IF(add_job(&cluster->workers, document, "chief", error));
    if (cluster->workers.count > 1)
        return error_set(error, source->code, "%s: cluster: chief: found %d addresses, expected 1",
                         source->name, cluster->workers.count);
    cluster->chief_is_job = cluster->workers.count == 1;
    return add_job(&cluster->workers, document, "worker", error);
}

/* --- who is where --- */

/* All addresses, ps first. */
static const struct address *address_at(const struct cluster *cluster, int i) {
    return i < cluster->ps.count ? &cluster->ps.list[i] : &cluster->workers.list[i - cluster->ps.count];
}

/* "ps 0", "chief 0", "worker 1": as its job counts it. */
static void name_of_address(const struct cluster *cluster, int i, char *out, size_t bytes) {
    const int worker = i - cluster->ps.count;
    const bool is_chief = cluster->chief_is_job && worker == 0;
    const char *job = worker < 0 ? "ps" : is_chief ? "chief" : "worker";
    const int index = worker < 0 ? i : cluster->chief_is_job && !is_chief ? worker - 1 : worker;
    snprintf(out, bytes, "%s %d", job, index);
}

static int check_addresses(const struct cluster *cluster, const struct source *source, struct error *error) {
    const int count = cluster->ps.count + cluster->workers.count;
    if (cluster->workers.count == 0)
        return error_set(error, source->code, "%s: found %d ps and no worker, expected one worker or more",
                         source->name, cluster->ps.count);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            const struct address *a = address_at(cluster, j), *b = address_at(cluster, i);
            if (!address_same(a, b)) continue;
            char first[32], second[32];
            name_of_address(cluster, j, first, sizeof first);
            name_of_address(cluster, i, second, sizeof second);
            return error_set(error, source->code, "%s: \"%s\" is there twice, as %s and as %s", source->name,
                             b->text, first, second);
        }
    return OK;
}

/* The addresses, and in *source where they come from. */
static int find_addresses(struct cluster *cluster, struct source *source, const struct config *settings,
                          const struct document *file, const struct document *environment,
                          struct error *error) {
    const bool has_ps = settings->ps_hosts[0] != '\0', has_workers = settings->worker_hosts[0] != '\0';
    *source = (struct source){0};
    if (has_ps || has_workers) {
        *source = (struct source){"cluster", ERROR_USAGE};
        if (has_ps) RETURN_IF(addresses_add_list(&cluster->ps, settings->ps_hosts, "--ps-hosts", error));
        if (has_workers)
            RETURN_IF(addresses_add_list(&cluster->workers, settings->worker_hosts, "--worker-hosts", error));
    } else if (file->cluster != NULL) {
        *source = file->source;
        RETURN_IF(add_jobs(cluster, file, error));
    } else if (environment->cluster != NULL) {
        RETURN_IF(add_jobs(cluster, environment, error));
        if (cluster->ps.count + cluster->workers.count == 0) return OK; /* for TensorFlow too: alone */
        *source = environment->source;
    }
    return source->name != NULL ? check_addresses(cluster, source, error) : OK;
}

/* --- who this process is --- */

/* 0 to 1023, as a number or as digits; -1: neither. */
static int index_of(const struct json_value *value) {
    if (value->kind == JSON_TEXT) return address_digits(value->text, ADDRESSES_MOST - 1);
    const bool is_index =
        value->number >= 0 && value->number < ADDRESSES_MOST && value->number == (double)(int)value->number;
    return is_index ? (int)value->number : -1;
}

/* What was not given by the options, from a document's task. Its index belongs to its job. */
static int task_from_document(struct own_task *task, const struct document *document, struct error *error) {
    const struct source *source = &document->source;
    const struct json_value *type = json_member(&document->json, document->task, "type");
    const struct json_value *index = json_member(&document->json, document->task, "index");
    if (type == NULL)
        return error_set(error, source->code, "%s: task: no type, expected ps, worker or chief",
                         source->name);
    RETURN_IF(expect_kind(type, JSON_TEXT, "ps, worker or chief", source, "task: type: ", error));
    if (index == NULL)
        return error_set(error, source->code, "%s: task: no index, expected a whole number from 0",
                         source->name);
    if (index->kind != JSON_TEXT)
        RETURN_IF(expect_kind(index, JSON_NUMBER, "a whole number from 0", source, "task: index: ", error));
    char shown[64];
    if (index->kind == JSON_TEXT)
        snprintf(shown, sizeof shown, "\"%.40s\"", index->text);
    else
        snprintf(shown, sizeof shown, "%.15g", index->number);
    const int found = index_of(index);
    if (found < 0)
        return error_set(error, source->code, "%s: task: index: found %s, expected a whole number, 0 to %d",
                         source->name, shown, ADDRESSES_MOST - 1);
    if (task->job == NULL) {
        task->job = type->text;
        task->job_code = source->code;
        snprintf(task->said_job, sizeof task->said_job, "%s: task: type \"%.40s\"", source->name, type->text);
    }
    if (task->index < 0 && strcmp(task->job, type->text) == 0) {
        task->index = found;
        task->index_code = source->code;
        snprintf(task->said_index, sizeof task->said_index, "%s: task: index %s", source->name, shown);
    }
    return OK;
}

static int find_task(struct own_task *task, const struct config *settings, const struct document *file,
                     const struct document *environment, struct error *error) {
    const struct document *document = file->task != NULL ? file : environment;
    *task = (struct own_task){.job = settings->job[0] != '\0' ? settings->job : NULL,
                              .index = settings->task,
                              .job_code = ERROR_USAGE,
                              .index_code = ERROR_USAGE};
    snprintf(task->said_job, sizeof task->said_job, "--job=%s", settings->job);
    snprintf(task->said_index, sizeof task->said_index, "--task=%d", settings->task);
    if (document->task == NULL || (task->job != NULL && task->index >= 0)) return OK;
    return task_from_document(task, document, error);
}

/* `jobs` is `job` for many of them. */
static int check_index(const struct own_task *task, const char *job, const char *jobs, int count,
                       struct error *error) {
    if (task->index < count) return OK;
    if (count == 0) return error_set(error, task->job_code, "%s: the cluster has no %s", task->said_job, job);
    if (count == 1)
        return error_set(error, task->index_code, "%s: the cluster has only %s 0", task->said_index, job);
    return error_set(error, task->index_code, "%s: the cluster has %s 0 to %d", task->said_index, jobs,
                     count - 1);
}

/* The role and the place of this process, of a cluster that has addresses. */
static int find_place(struct cluster *cluster, const struct own_task *task, const struct source *source,
                      struct error *error) {
    if (task->job == NULL && task->index >= 0)
        return error_set(error, ERROR_USAGE, "%s: expected --job=ps, worker or chief too", task->said_index);
    if (task->job == NULL)
        return error_set(error, source->code,
                         "%s: nothing says which one this process is, expected --job and --task",
                         source->name);
    const bool is_ps = strcmp(task->job, "ps") == 0, is_chief = strcmp(task->job, "chief") == 0;
    if (strcmp(task->job, "evaluator") == 0)
        return error_set(
            error, task->job_code,
            "%s: there is none here, every run evaluates by itself; expected ps, worker or chief",
            task->said_job);
    if (!is_ps && !is_chief && strcmp(task->job, "worker") != 0)
        return error_set(error, task->job_code, "%s: expected ps, worker or chief", task->said_job);
    if (task->index < 0)
        return error_set(error, ERROR_USAGE, "%s: expected --task=N too, which of them this process is",
                         task->said_job);
    const int own_job = cluster->chief_is_job ? 1 : 0;
    if (is_ps) {
        RETURN_IF(check_index(task, "ps", "ps", cluster->ps.count, error));
        cluster->task = task->index;
    } else if (is_chief) {
        RETURN_IF(check_index(task, "chief", "chiefs", 1, error));
        cluster->task = 0;
    } else {
        RETURN_IF(check_index(task, "worker", "workers", cluster->workers.count - own_job, error));
        cluster->task = task->index + own_job;
    }
    cluster->role = is_ps ? CLUSTER_PS : cluster->task == 0 ? CLUSTER_CHIEF : CLUSTER_WORKER;
    return OK;
}

static int resolve(struct cluster *cluster, const struct config *settings, const struct document *file,
                   const struct document *environment, struct error *error) {
    struct source source;
    struct own_task task;
    RETURN_IF(find_addresses(cluster, &source, settings, file, environment, error));
    if (source.name == NULL && (settings->job[0] != '\0' || settings->task >= 0)) {
        const struct document nothing = {0};
        RETURN_IF(find_task(&task, settings, &nothing, &nothing, error));
        return error_set(error, ERROR_USAGE,
                         "%s: there is no cluster, expected --worker-hosts, --cluster or TF_CONFIG",
                         task.job != NULL ? task.said_job : task.said_index);
    }
    if (source.name == NULL) return OK;
    RETURN_IF(find_task(&task, settings, file, environment, error));
    return find_place(cluster, &task, &source, error);
}

int cluster_resolve(struct cluster *out, const struct config *settings, const char *tf_config,
                    struct error *error) {
    struct document file = {0}, environment = {.source = {"TF_CONFIG", ERROR_USAGE}};
    *out = (struct cluster){.role = CLUSTER_NONE, .task = -1};
    if (settings->cluster[0] != '\0' && (settings->ps_hosts[0] != '\0' || settings->worker_hosts[0] != '\0'))
        return error_set(error, ERROR_USAGE,
                         "--cluster and --%s: expected one of them, both say who is where",
                         settings->ps_hosts[0] != '\0' ? "ps-hosts" : "worker-hosts");
    int code = OK;
    if (settings->cluster[0] != '\0') code = read_file(&file, settings->cluster, error);
    if (code == OK && tf_config != NULL && tf_config[0] != '\0')
        code = parse_document(&environment, tf_config, strlen(tf_config), false, error);
    if (code == OK) code = resolve(out, settings, &file, &environment, error);
    if (code == OK) code = secret_draw(&out->process, sizeof out->process, error);
    json_free(&environment.json);
    json_free(&file.json);
    if (code != OK) cluster_free(out);
    return code;
}

/* Of so many processes that share the launcher's cores: this one may have been bound to some of them, which
 * fewer share, or nobody. */
static int sharing(const struct cluster *cluster, int here) {
    struct cores own;
    if (cluster->cores == 0) return here;
    world_cores(&own);
    const int sharing = (own.count * here + cluster->cores - 1) / cluster->cores;
    return sharing < here ? sharing : here;
}

/* A parameter server takes turns with its workers: it steps and evaluates while they wait. */
int cluster_workers_here(const struct cluster *cluster) {
    int here = 0;
    if (cluster->role != CLUSTER_WORKER && cluster->role != CLUSTER_CHIEF) return 0;
    if (cluster->here > 0) return sharing(cluster, cluster->here);
    const char *own = cluster->workers.list[cluster->task].host;
    for (int w = 0; w < cluster->workers.count; w++) {
        const char *host = cluster->workers.list[w].host;
        if (strcasecmp(host, own) == 0 || world_is_here(host)) here++;
    }
    return sharing(cluster, here);
}

struct cluster_by cluster_by(const struct cluster *cluster) {
    struct cluster_by by = {""};
    if (cluster->by)
        snprintf(by.words, sizeof by.words, ", %sby %s", cluster->by[0] == '-' ? "started " : "",
                 cluster->by);
    return by;
}

const char *cluster_server(const struct cluster *cluster) {
    return cluster->mirrored ? "process" : "parameter server";
}

bool cluster_holds(const struct cluster *cluster) {
    return cluster->role == CLUSTER_PS || (cluster->mirrored && cluster->task < cluster->ps.count);
}

void cluster_free(struct cluster *cluster) {
    addresses_free(&cluster->workers);
    addresses_free(&cluster->ps);
    *cluster = (struct cluster){.role = CLUSTER_NONE, .task = -1};
}
