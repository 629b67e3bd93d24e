/* Clusters: the three ways to name one say the same, options win over TF_CONFIG, workers are counted after a
 * chief, and every mistake has its own words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../src/base/memory.h"
#include "../../src/bridge/cluster.h"
#include "../check.h"

enum { FLAGS_MOST = 4, SHOWN_BYTES = 512 };

/* What a process is given: options as typed, the text of its --cluster file, TF_CONFIG. */
struct process_given {
    const char *flags[FLAGS_MOST + 1]; /* "job_name=ps", ended by NULL */
    const char *file, *tf_config;      /* NULL: none */
};

static char file_path[] = "/tmp/test_cluster_XXXXXX";

static void write_file(const char *text) {
    FILE *file = fopen(file_path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s is not written", file_path);
}

static int resolve(struct cluster *cluster, const struct process_given *given, struct error *error) {
    static struct config settings;
    memset(cluster, 0, sizeof *cluster);
    option_defaults(config_options, &settings);
    for (int i = 0; given->flags[i] != NULL; i++) {
        char name[32] = "";
        const size_t length = strcspn(given->flags[i], "=");
        memcpy(name, given->flags[i], length);
        RETURN_IF(option_set(config_options, &settings, "--", name, given->flags[i] + length + 1, error));
    }
    if (given->file != NULL) {
        write_file(given->file);
        RETURN_IF(option_set(config_options, &settings, "--", "cluster", file_path, error));
    }
    return cluster_resolve(cluster, &settings, given->tf_config, error);
}

/* "worker 1; ps a:1; workers b:2 c:3" */
static void show(const struct cluster *cluster, char out[SHOWN_BYTES]) {
    const char *const roles[] = {"none", "ps", "worker", "chief"};
    int used = snprintf(out, SHOWN_BYTES, "%s %d; ps", roles[cluster->role], cluster->task);
    for (int i = 0; i < cluster->ps.count; i++)
        used += snprintf(out + used, SHOWN_BYTES - (size_t)used, " %s", cluster->ps.list[i].text);
    used += snprintf(out + used, SHOWN_BYTES - (size_t)used, "; workers");
    for (int i = 0; i < cluster->workers.count; i++)
        used += snprintf(out + used, SHOWN_BYTES - (size_t)used, " %s", cluster->workers.list[i].text);
}

static void expect(struct process_given given, const char *shown) {
    struct error error = {0};
    struct cluster cluster;
    char found[SHOWN_BYTES] = "";
    const int code = resolve(&cluster, &given, &error);
    if (code == OK) show(&cluster, found);
    CHECK(code == OK && strcmp(found, shown) == 0, "\"%s\" (%s), expected \"%s\"", found, error.words, shown);
    cluster_free(&cluster);
}

/* FILE in front of `words` stands for the path. */
static void refuse(struct process_given given, int code, const char *words) {
    struct error error = {0};
    struct cluster cluster;
    char expected[sizeof error.words];
    const bool names_file = strncmp(words, "FILE", 4) == 0;
    snprintf(expected, sizeof expected, "%s%s", names_file ? file_path : "", names_file ? words + 4 : words);
    const int found = resolve(&cluster, &given, &error);
    CHECK(found == code && strcmp(error.words, expected) == 0, "%d \"%s\", expected %d \"%s\"", found,
          error.words, code, expected);
    CHECK(cluster.ps.list == NULL && cluster.workers.list == NULL, "addresses are left after an error");
    cluster_free(&cluster);
}

#define FLAGS(...) ((struct process_given){.flags = {__VA_ARGS__}})
#define TEXT_IN_FILE(text) ((struct process_given){.file = (text)})
#define TEXT_IN_TF_CONFIG(text) ((struct process_given){.tf_config = (text)})

/* --- what is understood --- */

static const char hosts_shown[] = "ps a:2222; workers b:2222 c:2222 d:2222";

/* One ps and three workers, each started with its own job and task; shown by all three ways. */
static void test_three_ways(void) {
    const char *const jobs[] = {"ps", "worker", "worker", "worker"};
    const char *const tasks[] = {"0", "0", "1", "2"};
    const char *const roles[] = {"ps 0", "chief 0", "worker 1", "worker 2"};
    for (int i = 0; i < 4; i++) {
        char job[32], task[32], shown[SHOWN_BYTES], config[300];
        snprintf(job, sizeof job, "job_name=%s", jobs[i]);
        snprintf(task, sizeof task, "task_index=%s", tasks[i]);
        snprintf(shown, sizeof shown, "%s; %s", roles[i], hosts_shown);
        expect(FLAGS(job, task, "ps_hosts=a:2222", "worker_hosts=b:2222, c:2222 ,d:2222"), shown);
        const char *const cluster =
            "{\"worker\": [\"b:2222\", \"c:2222\", \"d:2222\"],\n \"ps\": [\"a:2222\"]}";
        expect((struct process_given){.flags = {job, task}, .file = cluster}, shown);
        snprintf(config, sizeof config, "{\"cluster\": %s}", cluster);
        expect((struct process_given){.flags = {job, task}, .file = config}, shown);
        snprintf(config, sizeof config, "{\"cluster\": %s, \"task\": {\"type\": \"%s\", \"index\": %s}}",
                 cluster, jobs[i], tasks[i]);
        expect(TEXT_IN_FILE(config), shown);
        expect(TEXT_IN_TF_CONFIG(config), shown);
    }
    expect(FLAGS("job=worker", "task=0", "worker-hosts=a:1"), "chief 0; ps; workers a:1");
    expect(FLAGS("job=ps", "task=0", "ps-hosts=localhost:1", "worker-hosts=localhost:2,localhost:3"),
           "ps 0; ps localhost:1; workers localhost:2 localhost:3");
}

/* As TensorFlow's documentation and Kubeflow write it; no ps is a mirrored cluster. */
static void test_tf_config(void) {
    expect(TEXT_IN_TF_CONFIG("{\"cluster\": {\"worker\": [\"10.0.0.1:12345\", \"10.0.0.2:12345\"]},"
                             " \"task\": {\"type\": \"worker\", \"index\": 1}}"),
           "worker 1; ps; workers 10.0.0.1:12345 10.0.0.2:12345");
    expect(
        TEXT_IN_TF_CONFIG("{\"task\": {\"index\": \"1\", \"type\": \"worker\"}, \"environment\": \"cloud\","
                          " \"rpc_layer\": \"grpc\", \"cluster\": {\"ps\": [], \"worker\":"
                          " [\"n-worker-0.d.svc:2222\", \"n-worker-1.d.svc:2222\"]}}"),
        "worker 1; ps; workers n-worker-0.d.svc:2222 n-worker-1.d.svc:2222");
    expect(TEXT_IN_TF_CONFIG("{\"cluster\": {\"worker\": [\"[::1]:1\", \"[fe80::1%eth0]:65535\"]},"
                             " \"task\": {\"type\": \"worker\", \"index\": \"0\"}}"),
           "chief 0; ps; workers [::1]:1 [fe80::1%eth0]:65535");
}

/* The chief comes before the workers, wherever its job stands in the text. */
static void test_chief(void) {
    const char *const cluster = "{\"worker\": [\"w0:1\", \"w1:1\"], \"ps\": [\"p:1\"], \"chief\": [\"c:1\"]}";
    expect((struct process_given){.flags = {"job=chief", "task=0"}, .file = cluster},
           "chief 0; ps p:1; workers c:1 w0:1 w1:1");
    expect((struct process_given){.flags = {"job=worker", "task=0"}, .file = cluster},
           "worker 1; ps p:1; workers c:1 w0:1 w1:1");
    expect((struct process_given){.flags = {"job=worker", "task=1"}, .file = cluster},
           "worker 2; ps p:1; workers c:1 w0:1 w1:1");
    refuse((struct process_given){.flags = {"job=worker", "task=2"}, .file = cluster}, ERROR_USAGE,
           "--task=2: the cluster has workers 0 to 1");
    expect(FLAGS("job=chief", "task=0", "worker-hosts=a:1,b:1"), "chief 0; ps; workers a:1 b:1");
    expect(TEXT_IN_TF_CONFIG("{\"cluster\": {\"ps\": [\"p:1\"], \"chief\": [\"c:1\"]},"
                             " \"task\": {\"type\": \"ps\", \"index\": 0}}"),
           "ps 0; ps p:1; workers c:1");
}

static void test_no_cluster(void) {
    const char *const none = "none -1; ps; workers";
    expect((struct process_given){0}, none);
    expect(TEXT_IN_TF_CONFIG(""), none);
    expect(TEXT_IN_TF_CONFIG("{}"), none);
    expect(TEXT_IN_TF_CONFIG("{\"cluster\": {}, \"task\": {\"type\": \"worker\", \"index\": 0}}"), none);
    expect(TEXT_IN_TF_CONFIG("{\"environment\": \"cloud\"}"), none);
}

/* Addresses as a whole, the job and the task come each from the first that says them. */
static void test_order_of_sources(void) {
    const char *const config = "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"], \"ps\": [\"p:1\"]},"
                               " \"task\": {\"type\": \"worker\", \"index\": 1}}";
    const struct process_given cases[] = {
        {.tf_config = config},
        {.tf_config = config, .flags = {"task=0"}},
        {.tf_config = config, .flags = {"job=ps", "task=0"}},
        {.tf_config = config, .flags = {"job=worker"}},
        {.tf_config = config, .flags = {"worker-hosts=x:1,y:1"}},
        {.tf_config = config, .flags = {"worker-hosts=x:1", "job=worker", "task=0"}},
        {.tf_config = config, .file = "{\"worker\": [\"x:1\", \"y:1\"]}"},
        {.tf_config = config,
         .file = "{\"cluster\": {\"worker\": [\"x:1\", \"y:1\"]}, \"task\": {\"type\": \"chief\", \"index\": "
                 "0}}"},
        {.tf_config = "{\"task\": {\"type\": \"evaluator\", \"index\": -7}}",
         .flags = {"worker-hosts=x:1", "job=worker", "task=0"}},
    };
    const char *const shown[] = {
        "worker 1; ps p:1; workers a:1 b:1", "chief 0; ps p:1; workers a:1 b:1",
        "ps 0; ps p:1; workers a:1 b:1",     "worker 1; ps p:1; workers a:1 b:1",
        "worker 1; ps; workers x:1 y:1",     "chief 0; ps; workers x:1",
        "worker 1; ps; workers x:1 y:1",     "chief 0; ps; workers x:1 y:1",
        "chief 0; ps; workers x:1",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) expect(cases[i], shown[i]);
    refuse((struct process_given){.tf_config = config, .flags = {"job=ps"}}, ERROR_USAGE,
           "--job=ps: expected --task=N too, which of them this process is");
}

/* The host without its brackets, and the port as a number. */
static void test_address_parts(void) {
    struct error error = {0};
    struct cluster cluster;
    resolve(&cluster, &FLAGS("job=ps", "task=0", "ps-hosts=[::1]:8080", "worker-hosts=a_b.c-d:65535"),
            &error);
    CHECK(cluster.ps.count == 1 && cluster.workers.count == 1, "%s", error.words);
    if (error.code == OK) {
        const struct address *ps = &cluster.ps.list[0], *worker = &cluster.workers.list[0];
        CHECK(strcmp(ps->host, "::1") == 0 && ps->port == 8080, "%s %d", ps->host, ps->port);
        CHECK(strcmp(worker->host, "a_b.c-d") == 0 && worker->port == 65535, "%s %d", worker->host,
              worker->port);
    }
    cluster_free(&cluster);
}

/* --- what is refused --- */

static void test_refused_options(void) {
    const struct {
        struct process_given given;
        const char *words;
    } cases[] = {
        {FLAGS("job=worker", "task=3", "worker-hosts=a:1,b:1"), "--task=3: the cluster has workers 0 to 1"},
        {FLAGS("job=worker", "task=1", "worker-hosts=a:1"), "--task=1: the cluster has only worker 0"},
        {FLAGS("job=ps", "task=2", "ps-hosts=a:1,b:1", "worker-hosts=c:1"),
         "--task=2: the cluster has ps 0 to 1"},
        {FLAGS("job=chief", "task=1", "worker-hosts=a:1,b:1"), "--task=1: the cluster has only chief 0"},
        {FLAGS("job=ps", "task=0", "worker-hosts=a:1"), "--job=ps: the cluster has no ps"},
        {FLAGS("job=foo", "task=0", "worker-hosts=a:1"), "--job=foo: expected ps, worker or chief"},
        {FLAGS("job=evaluator", "task=0", "worker-hosts=a:1"),
         "--job=evaluator: there is none here, every run evaluates by itself; expected ps, worker or chief"},
        {FLAGS("job=worker", "task=0"),
         "--job=worker: there is no cluster, expected --worker-hosts, --cluster or TF_CONFIG"},
        {FLAGS("task=2"), "--task=2: there is no cluster, expected --worker-hosts, --cluster or TF_CONFIG"},
        {FLAGS("task=0", "worker-hosts=a:1"), "--task=0: expected --job=ps, worker or chief too"},
        {FLAGS("job=worker", "worker-hosts=a:1"),
         "--job=worker: expected --task=N too, which of them this process is"},
        {FLAGS("worker-hosts=a:1"),
         "cluster: nothing says which one this process is, expected --job and --task"},
        {FLAGS("job=ps", "task=0", "ps-hosts=a:1"),
         "cluster: found 1 ps and no worker, expected one worker or more"},
        {FLAGS("worker-hosts=a:1,a:1"), "cluster: \"a:1\" is there twice, as worker 0 and as worker 1"},
        {FLAGS("worker-hosts=a:1,b:1,A:1"), "cluster: \"A:1\" is there twice, as worker 0 and as worker 2"},
        {FLAGS("ps-hosts=b:1,a:1", "worker-hosts=c:1,a:01"),
         "cluster: \"a:01\" is there twice, as ps 1 and as worker 1"},
        {FLAGS("task=-2"), "--task=-2: expected -1 to 1023"},
        {FLAGS("job_name=0123456789012345678901234567890x"),
         "--job=0123456789012345678901234567890x: expected at most 31 characters, found 32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse(cases[i].given, ERROR_USAGE, cases[i].words);
    refuse((struct process_given){.file = "{}", .flags = {"ps-hosts=a:1"}}, ERROR_USAGE,
           "--cluster and --ps-hosts: expected one of them, both say who is where");
    refuse((struct process_given){.file = "{}", .flags = {"worker-hosts=a:1"}}, ERROR_USAGE,
           "--cluster and --worker-hosts: expected one of them, both say who is where");
}

static void test_refused_addresses(void) {
    const char *const cases[][2] = {
        {"b", "\"b\" has no port, expected host:port"},
        {"[::1]", "\"[::1]\" has no port, expected host:port"},
        {"b:", "\"b:\": found port \"\", expected 1 to 65535"},
        {"b:0", "\"b:0\": found port \"0\", expected 1 to 65535"},
        {"b:65536", "\"b:65536\": found port \"65536\", expected 1 to 65535"},
        {"b:4294967297", "\"b:4294967297\": found port \"4294967297\", expected 1 to 65535"},
        {"b:-1", "\"b:-1\": found port \"-1\", expected 1 to 65535"},
        {"b:2x", "\"b:2x\": found port \"2x\", expected 1 to 65535"},
        {":1", "\":1\": there is no host, expected host:port or [IPv6]:port"},
        {"[]:1", "\"[]:1\": there is no host, expected host:port or [IPv6]:port"},
        {"::1", "\"::1\": an IPv6 address stands in brackets, expected host:port or [IPv6]:port"},
        {"[b]:1", "\"[b]:1\": there is no IPv6 address in the brackets, expected host:port or [IPv6]:port"},
        {"http://b:1",
         "\"http://b:1\": a host has only letters, digits, . - and _, expected host:port or [IPv6]:port"},
        {"b c:1", "\"b c:1\": a host has only letters, digits, . - and _, expected host:port or [IPv6]:port"},
        {"", "address 2 is empty, expected host:port"},
        {"  ", "address 2 is empty, expected host:port"},
        {",c:1", "address 2 is empty, expected host:port"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char flag[100], words[200], config[200];
        snprintf(flag, sizeof flag, "worker_hosts=a:1,%s", cases[i][0]);
        snprintf(words, sizeof words, "--worker-hosts: %s", cases[i][1]);
        refuse(FLAGS(flag), ERROR_USAGE, words);
        if (cases[i][1][0] != '"') continue;
        snprintf(config, sizeof config, "{\"cluster\": {\"ps\": [\"a:1\", \"%s\"]}}", cases[i][0]);
        snprintf(words, sizeof words, "FILE: cluster: ps 1: %s", cases[i][1]);
        refuse(TEXT_IN_FILE(config), ERROR_FILE, words);
    }
    char host[400] = "", long_host[300] = "";
    memset(long_host, 'h', 256);
    snprintf(host, sizeof host, "ps-hosts=%s:1", long_host);
    char words[500];
    snprintf(words, sizeof words,
             "--ps-hosts: \"%s:1\": the host is too long, expected host:port or [IPv6]:port", long_host);
    refuse(FLAGS(host), ERROR_USAGE, words);
    memset(long_host, 'h', 299);
    snprintf(host, sizeof host, "ps-hosts=%s:1", long_host);
    snprintf(words, sizeof words, "--ps-hosts: \"%.40s...\": found 301 characters, expected at most 271",
             long_host);
    refuse(FLAGS(host), ERROR_USAGE, words);
}

/* 1,024 addresses are a cluster, one more is not. */
static void test_most_addresses(void) {
    char text[40000] = "{\"worker\": [";
    size_t used = strlen(text);
    for (int i = 0; i <= ADDRESSES_MOST; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"worker-%d:1\"", i == 0 ? "" : ", ", i);
        if (i < ADDRESSES_MOST - 1) continue;
        snprintf(text + used, sizeof text - used, "]}");
        struct error error = {0};
        struct cluster cluster;
        const int code = resolve(
            &cluster, &(struct process_given){.flags = {"job=worker", "task=1023"}, .file = text}, &error);
        char words[300];
        snprintf(words, sizeof words, "%s: cluster: worker 1024: found more than 1024 addresses", file_path);
        if (i == ADDRESSES_MOST - 1)
            CHECK(code == OK && cluster.workers.count == ADDRESSES_MOST && cluster.task == 1023, "%s",
                  error.words);
        else
            CHECK(code == ERROR_FILE && strcmp(error.words, words) == 0, "%d \"%s\"", code, error.words);
        cluster_free(&cluster);
    }
}

#define WITH_TASK(cluster) "{\"cluster\": {" cluster "}, \"task\": {\"type\": \"worker\", \"index\": 0}}"
#define WITH_CLUSTER(task) "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}, \"task\": " task "}"

/* The file and TF_CONFIG are read alike; only the name in the words and the code differ. */
static void test_refused_texts(void) {
    const char *const cases[][2] = {
        {"{\"cluster\" 1}", "JSON line 1, column 12: found '1', expected ':'"},
        {"{\"cluster\":\n {\"worker\": [\"a:1\"",
         "JSON line 2, column 19: found the end, expected ',' or ']'"},
        {"  ", "JSON line 1, column 3: found the end, expected a value"},
        {"[]", "found an array, expected an object that has cluster and task"},
        {"null", "found null, expected an object that has cluster and task"},
        {"{\"cluster\": \"a:1\"}", "cluster: found a text, expected an object that has ps, worker and chief"},
        {"{\"cluster\": {}, \"task\": 3}",
         "task: found a number, expected an object that has type and index"},
        {WITH_TASK("\"worker\": \"a:1\""),
         "cluster: worker: found a text, expected an array of \"host:port\""},
        {WITH_TASK("\"worker\": {}"), "cluster: worker: found an object, expected an array of \"host:port\""},
        {WITH_TASK("\"worker\": [\"a:1\", 2]"), "cluster: worker 1: found a number, expected \"host:port\""},
        {WITH_TASK("\"worker\": [\"a:1\", \"b\"]"),
         "cluster: worker 1: \"b\" has no port, expected host:port"},
        {WITH_TASK("\"wroker\": [\"a:1\"]"), "cluster: job \"wroker\", expected ps, worker or chief"},
        {WITH_TASK("\"chief\": [\"a:1\", \"b:1\"]"), "cluster: chief: found 2 addresses, expected 1"},
        {WITH_TASK("\"ps\": [\"a:1\"]"), "found 1 ps and no worker, expected one worker or more"},
        {WITH_TASK("\"chief\": [\"a:1\"], \"worker\": [\"b:1\", \"a:1\"]"),
         "\"a:1\" is there twice, as chief 0 and as worker 1"},
        {WITH_TASK("\"chief\": [\"a:1\"]"), "task: type \"worker\": the cluster has no worker"},
        {"{\"cluster\": {\"worker\": [\"a:1\"]}}",
         "nothing says which one this process is, expected --job and --task"},
        {WITH_CLUSTER("{\"index\": 0}"), "task: no type, expected ps, worker or chief"},
        {WITH_CLUSTER("{\"type\": \"worker\"}"), "task: no index, expected a whole number from 0"},
        {WITH_CLUSTER("{\"type\": 1, \"index\": 0}"),
         "task: type: found a number, expected ps, worker or chief"},
        {WITH_CLUSTER("{\"type\": \"master\", \"index\": 0}"),
         "task: type \"master\": expected ps, worker or chief"},
        {WITH_CLUSTER("{\"type\": \"evaluator\", \"index\": 0}"),
         "task: type \"evaluator\": there is none here, every run evaluates by itself; expected ps, worker "
         "or "
         "chief"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": true}"),
         "task: index: found true or false, expected a whole number from 0"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": 0.5}"),
         "task: index: found 0.5, expected a whole number, 0 to 1023"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": -1}"),
         "task: index: found -1, expected a whole number, 0 to 1023"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": 1e300}"),
         "task: index: found 1e+300, expected a whole number, 0 to 1023"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": \"one\"}"),
         "task: index: found \"one\", expected a whole number, 0 to 1023"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": \"\"}"),
         "task: index: found \"\", expected a whole number, 0 to 1023"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": 2}"),
         "task: index 2: the cluster has workers 0 to 1"},
        {WITH_CLUSTER("{\"type\": \"worker\", \"index\": \"2\"}"),
         "task: index \"2\": the cluster has workers 0 to 1"},
        {WITH_CLUSTER("{\"type\": \"ps\", \"index\": 0}"), "task: type \"ps\": the cluster has no ps"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[300];
        snprintf(words, sizeof words, "TF_CONFIG: %s", cases[i][1]);
        refuse(TEXT_IN_TF_CONFIG(cases[i][0]), ERROR_USAGE, words);
        snprintf(words, sizeof words, "FILE: %s", cases[i][1]);
        refuse(TEXT_IN_FILE(cases[i][0]), ERROR_FILE, words);
    }
    /* Only a file may be the cluster itself, and only a file must have one. */
    refuse(TEXT_IN_FILE("{}"), ERROR_FILE, "FILE: found 0 ps and no worker, expected one worker or more");
    refuse(TEXT_IN_FILE("{\"task\": {}}"), ERROR_FILE,
           "FILE: cluster: job \"task\", expected ps, worker or chief");
    expect(TEXT_IN_TF_CONFIG("{\"worker\": [\"a:1\"]}"), "none -1; ps; workers");
    refuse(FLAGS("cluster=/none/such.json"), ERROR_FILE, "/none/such.json: No such file or directory");
}

/* How many workers divide the cores. */
static void here(struct process_given given, int expected) {
    struct error error = {0};
    struct cluster cluster;
    const int code = resolve(&cluster, &given, &error), found = cluster_workers_here(&cluster);
    CHECK(code == OK && found == expected, "%s %s: %d are here (%s), expected %d", given.flags[0],
          given.flags[1], found, error.words, expected);
    cluster_free(&cluster);
}

static void test_workers_here(void) {
    const char *local = "worker-hosts=localhost:1,127.0.0.1:2,[::1]:3", *ps = "ps-hosts=localhost:9";
    here(FLAGS(local, "job=worker", "task=0"), 3);
    here(FLAGS(local, "job=worker", "task=2", ps), 3);
    here(FLAGS(local, "job=ps", "task=0", ps), 0);
    here(FLAGS("worker-hosts=localhost:1", "job=worker", "task=0", ps), 1);
    /* Another machine's name is only this process's own when it is the same. */
    const char *two = "worker-hosts=node-a.invalid:1,node-b.invalid:1,Node-A.invalid:2,203.0.113.77:1";
    here(FLAGS(two, "job=worker", "task=0"), 2);
    here(FLAGS(two, "job=worker", "task=1"), 1);
    here(FLAGS(two, "job=worker", "task=2"), 2);
    here(FLAGS(two, "job=worker", "task=3"), 1);
    here(FLAGS("worker-hosts=node-a.invalid:1,127.0.0.1:2", "job=worker", "task=0"), 2);
    /* A chief that has a job of its own is one of the workers. */
    here((struct process_given){.flags = {"job=worker", "task=0"},
                                .file = "{\"chief\": [\"localhost:1\"], \"worker\": [\"localhost:2\"]}"},
         2);
    here((struct process_given){.flags = {NULL}}, 0);
}

/* Both names of an option are typed, the help shows both. */
static void test_help(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    CHECK(file != NULL, "no memory");
    if (file == NULL) return;
    const struct page page = {.file = file, .columns = 200};
    option_help(&page, config_options, "--", true);
    fclose(file);
    const char *job = strstr(text, "  --job="), *task = strstr(text, "  --task=");
    CHECK(job && strstr(job, "(also --job_name)\n") && strstr(job, "(also --job_name)\n") < task, "\n%s",
          text);
    CHECK(task && strstr(task, "also --task_index; "), "\n%s", text);
    free(text);
}

int main(void) {
    const int file = mkstemp(file_path);
    if (file < 0) return 1;
    close(file);
    test_three_ways();
    test_tf_config();
    test_chief();
    test_no_cluster();
    test_order_of_sources();
    test_address_parts();
    test_refused_options();
    test_refused_addresses();
    test_most_addresses();
    test_refused_texts();
    test_workers_here();
    test_help();
    unlink(file_path);
    return check_end();
}
