/* What launchers say by the environment becomes a cluster: by each launcher, on one machine and on several,
 * with and without parameter servers; what is typed goes first; what is missing, and what is nonsense, is
 * said.
 */
#include <stdlib.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/launch/launch.h"
#include "../../src/launch/launchers.h"
#include "../../src/launch/places.h"
#include "../check.h"

enum { SHOWN_BYTES = 4096 };

/* "NAME=value NAME=value" */
static const char *environment;

static char *variable(const char *name) {
    static char values[64][1024]; /* of the last calls, as long as anybody looks at them */
    static unsigned calls;
    const size_t length = strlen(name);
    for (const char *at = environment; *at != '\0'; at += strspn(at, " ")) {
        const size_t whole = strcspn(at, " ");
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            char *value = values[calls++ % 64];
            memcpy(value, at + length + 1, whole - length - 1);
            value[whole - length - 1] = '\0';
            return value;
        }
        at += whole;
    }
    return NULL;
}

static int resolve(struct cluster *cluster, const char *in, const char *typed, struct error *error) {
    static struct config settings;
    char words[512];
    environment = in;
    option_defaults(config_options, &settings);
    snprintf(words, sizeof words, "%s", typed);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value = '\0';
        RETURN_IF(option_set(config_options, &settings, "--", word, value + 1, error));
    }
    return launch_resolve(cluster, &settings, variable, error);
}

/* "worker 1 of Slurm; ps a:1; workers b:2 c:3" */
static void show(const struct cluster *cluster, char out[SHOWN_BYTES]) {
    const char *const roles[] = {"none", "ps", "worker", "chief"};
    int used = snprintf(out, SHOWN_BYTES, "%s %d of %s; ps", roles[cluster->role], cluster->task,
                        cluster->by ? cluster->by : "nobody");
    for (int i = 0; i < cluster->ps.count; i++)
        used += snprintf(out + used, SHOWN_BYTES - (size_t)used, " %s", cluster->ps.list[i].text);
    used += snprintf(out + used, SHOWN_BYTES - (size_t)used, "; workers");
    for (int i = 0; i < cluster->workers.count; i++)
        used += snprintf(out + used, SHOWN_BYTES - (size_t)used, " %s", cluster->workers.list[i].text);
}

static void expect(const char *in, const char *typed, const char *shown) {
    struct error error = {0};
    struct cluster cluster;
    char found[SHOWN_BYTES] = "";
    const int code = resolve(&cluster, in, typed, &error);
    if (code == OK) show(&cluster, found);
    CHECK(code == OK && strcmp(found, shown) == 0, "in \"%s\" %s: \"%s\" (%s), expected \"%s\"", in, typed,
          found, error.words, shown);
    cluster_free(&cluster);
}

static void refuse(const char *in, const char *typed, const char *words) {
    struct error error = {0};
    struct cluster cluster;
    const int code = resolve(&cluster, in, typed, &error);
    CHECK(code == ERROR_USAGE && strcmp(error.words, words) == 0, "in \"%s\" %s: %d \"%s\", expected \"%s\"",
          in, typed, code, error.words, words);
    CHECK(!cluster.ps.list && !cluster.workers.list, "addresses are left after an error");
    cluster_free(&cluster);
}

static const char alone[] = "none -1 of nobody; ps; workers";

/* --- launchers --- */

#define OMPI "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=3 PMIX_NAMESPACE=77 "
#define SLURM "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "

static void test_one_machine(void) {
    expect(OMPI "OMPI_COMM_WORLD_RANK=0", "ps=1 port=2222",
           "ps 0 of Open MPI; ps 127.0.0.1:2222; workers 127.0.0.1:2223 127.0.0.1:2224");
    expect(OMPI "OMPI_COMM_WORLD_RANK=1", "ps=1 port=2222",
           "chief 0 of Open MPI; ps 127.0.0.1:2222; workers 127.0.0.1:2223 127.0.0.1:2224");
    expect(OMPI "OMPI_COMM_WORLD_RANK=2", "ps=2 port=2222",
           "chief 0 of Open MPI; ps 127.0.0.1:2222 127.0.0.1:2223; workers 127.0.0.1:2224");
    expect(OMPI "OMPI_COMM_WORLD_RANK=2", "port=1",
           "worker 2 of Open MPI; ps; workers 127.0.0.1:1 127.0.0.1:2 127.0.0.1:3");
    expect("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", "ps=1 port=5",
           "chief 0 of MPI (PMI); ps 127.0.0.1:5; workers 127.0.0.1:6");
    expect("PALS_RANKID=1 PMI_SIZE=2 PALS_LOCAL_SIZE=2 PALS_APID=9", "ps=1 port=5",
           "chief 0 of MPI (PMI); ps 127.0.0.1:5; workers 127.0.0.1:6");
    expect("RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=500", "ps=1",
           "chief 0 of RANK and WORLD_SIZE; ps 127.0.0.1:500; workers 127.0.0.1:501");
    expect("RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=500", "",
           "worker 1 of RANK and WORLD_SIZE; ps; workers 127.0.0.1:500 127.0.0.1:501");
    expect(SLURM "SLURM_PROCID=3 SLURM_STEP_NODELIST=n1 SLURM_STEP_TASKS_PER_NODE=4", "port=9 ps=3",
           "chief 0 of Slurm; ps 127.0.0.1:9 127.0.0.1:10 127.0.0.1:11; workers 127.0.0.1:12");
}

/* torchrun's agent listens at MASTER_PORT itself. */
static void test_torchrun(void) {
    expect("TORCHELASTIC_RUN_ID=a RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h "
           "MASTER_PORT=500",
           "", "worker 1 of torchrun; ps; workers 127.0.0.1:501 127.0.0.1:502");
    expect("TORCHELASTIC_RUN_ID=a RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h "
           "MASTER_PORT=500",
           "ps=1", "worker 2 of torchrun; ps h:501; workers rank-1:502 rank-2:503 rank-3:504");
    expect("TORCHELASTIC_RUN_ID=a RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_PORT=500 " SLURM
           "SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1-4] SLURM_STEP_TASKS_PER_NODE=1(x4)",
           "", "worker 1 of torchrun; ps; workers 127.0.0.1:501 127.0.0.1:502");
}

static void test_several_machines(void) {
    expect(SLURM "SLURM_PROCID=0 SLURM_NODEID=0 SLURM_STEP_NODELIST=n[08-09] SLURM_STEP_TASKS_PER_NODE=3,1",
           "port=9", "chief 0 of Slurm; ps; workers n08:9 n08:10 n08:11 n09:12");
    expect(SLURM "SLURM_PROCID=2 SLURM_NODEID=1 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=2(x2)",
           "port=9 ps=1", "worker 1 of Slurm; ps n1:9; workers n1:10 n2:11 n2:12");
    expect(SLURM "SLURM_PROCID=1 SLURM_NODEID=1 SLURM_DISTRIBUTION=cyclic SLURM_STEP_NODELIST=a,b "
                 "SLURM_STEP_TASKS_PER_NODE=3,1",
           "port=9 ps=1", "chief 0 of Slurm; ps a:9; workers b:10 a:11 a:12");
    expect("PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=job-0.svc PET_MASTER_PORT=29400", "ps=1",
           "chief 0 of Kubeflow Trainer; ps job-0.svc:29400; workers rank-1:29401");
    expect("RANK=1 WORLD_SIZE=3 MASTER_ADDR=fe80::1 MASTER_PORT=7", "ps=1",
           "chief 0 of RANK and WORLD_SIZE; ps [fe80::1]:7; workers rank-1:8 rank-2:9");
    expect("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=1", "hosts=a:2,b port=7",
           "worker 2 of Open MPI; ps; workers a:7 a:8 b:9");
    expect("TRAINER_RANK=1 TRAINER_SIZE=2 TRAINER_PORT=30", "hosts=a,[::1]",
           "worker 1 of --hosts; ps; workers a:30 [::1]:31");
}

/* The first row of the table that applies; a process manager that srun has started is no task. */
static void test_one_inside_another(void) {
    expect(SLURM "SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1-4] SLURM_STEP_TASKS_PER_NODE=1(x4) " OMPI
                 "OMPI_COMM_WORLD_RANK=1",
           "port=1", "worker 1 of Open MPI; ps; workers 127.0.0.1:1 127.0.0.1:2 127.0.0.1:3");
    expect(SLURM
           "SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1-4] SLURM_STEP_TASKS_PER_NODE=1(x4) PMI_RANK=5 PMI_SIZE=6 "
           "MPI_LOCALNRANKS=6",
           "port=1 ps=5",
           "chief 0 of MPI (PMI); ps 127.0.0.1:1 127.0.0.1:2 127.0.0.1:3 127.0.0.1:4 127.0.0.1:5; "
           "workers 127.0.0.1:6");
    expect(SLURM "SLURM_PROCID=3 SLURM_STEP_NODELIST=n1 PMI_RANK=3 PMI_SIZE=4", "port=1 ps=3",
           "chief 0 of Slurm; ps 127.0.0.1:1 127.0.0.1:2 127.0.0.1:3; workers 127.0.0.1:4");
}

/* A shell in an allocation, a job of one process, what is half there: alone, as ever. */
static void test_alone(void) {
    expect("", "", alone);
    expect("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NODELIST=n[1-4]", "", alone);
    expect("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=4", "", alone);
    expect("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NODELIST=n1", "", alone);
    expect("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "", alone);
    expect("RANK=3", "", alone);
    expect("WORLD_SIZE=3 MASTER_ADDR=h MASTER_PORT=1", "", alone);
    expect("RANK= WORLD_SIZE=", "", alone);
    expect(OMPI "OMPI_COMM_WORLD_RANK=1", "launcher=none", alone);
    expect("TF_CONFIG={\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\",\"index\":0}}",
           "launcher=none", alone);
}

/* --- what is typed goes first, then TF_CONFIG --- */

static void test_order(void) {
    static const char tf[] =
        "TF_CONFIG={\"cluster\":{\"worker\":[\"a:1\",\"b:1\"]},\"task\":{\"type\":\"worker\","
        "\"index\":1}} " OMPI "OMPI_COMM_WORLD_RANK=2";
    expect(tf, "", "worker 1 of nobody; ps; workers a:1 b:1");
    expect(tf, "worker-hosts=x:1,y:1 job=worker task=0", "chief 0 of nobody; ps; workers x:1 y:1");
    expect(OMPI "OMPI_COMM_WORLD_RANK=2", "worker-hosts=x:1,y:1 job=worker task=0",
           "chief 0 of nobody; ps; workers x:1 y:1");
    expect(OMPI "OMPI_COMM_WORLD_RANK=2", "ps-hosts=p:1 worker-hosts=x:1,y:1",
           "worker 1 of Open MPI; ps p:1; workers x:1 y:1");
    expect(OMPI "OMPI_COMM_WORLD_RANK=0", "ps-hosts=p:1 worker-hosts=x:1,y:1",
           "ps 0 of Open MPI; ps p:1; workers x:1 y:1");
    refuse(OMPI "OMPI_COMM_WORLD_RANK=0", "ps-hosts=p:1 worker-hosts=x:1",
           "found addresses of 2 processes, Open MPI has started 3");
    refuse(tf, "ps=1", "--ps=1: TF_CONFIG says already who serves");
    refuse(OMPI "OMPI_COMM_WORLD_RANK=0", "ps=1 worker-hosts=x:1",
           "--ps=1: the list of addresses says already who serves");
}

/* --- what is missing, and nonsense --- */

static void test_refused(void) {
    refuse(
        "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=7", "",
        "Open MPI: 4 processes on several machines, and nothing says which; expected --hosts, or --ps=1 and "
        "MASTER_ADDR, the host of the first one");
    refuse("RANK=0 WORLD_SIZE=4", "",
           "RANK and WORLD_SIZE: 4 processes, and nothing says where they are; expected MASTER_ADDR, the "
           "host of the "
           "first one, with --ps=1; or --hosts (--launcher=none: alone)");
    refuse("RANK=0 WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1", "",
           "RANK and WORLD_SIZE: only the host of the first process is known (MASTER_ADDR=h); expected "
           "--ps=1, which "
           "has it serve the others, or --hosts");
    refuse("RANK=0 WORLD_SIZE=4 MASTER_ADDR=h", "ps=1",
           "RANK and WORLD_SIZE: nothing says which ports to use, expected --port=N");
    refuse("RANK=4 WORLD_SIZE=4", "", "RANK: found \"4\", expected 0 to 3 (--launcher=none: alone)");
    refuse("RANK=-1 WORLD_SIZE=4", "", "RANK: found \"-1\", expected 0 to 3 (--launcher=none: alone)");
    refuse("RANK=0 WORLD_SIZE=x", "", "WORLD_SIZE: found \"x\", expected 1 to 1024 (--launcher=none: alone)");
    refuse("RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=3", "",
           "LOCAL_WORLD_SIZE: found \"3\", expected 1 to 2 (--launcher=none: alone)");
    refuse("RANK=0 WORLD_SIZE=2 MASTER_PORT=65536", "",
           "MASTER_PORT: found \"65536\", expected 1 to 65535 (--launcher=none: alone)");
    refuse(OMPI "OMPI_COMM_WORLD_RANK=0", "ps=3",
           "--ps=3: Open MPI has started 3 processes, expected one more at least");
    refuse("RANK=0 WORLD_SIZE=1", "ps=1",
           "--ps=1: RANK and WORLD_SIZE has started 1 process, expected one more at least");
    refuse(OMPI "OMPI_COMM_WORLD_RANK=0", "port=65534",
           "Open MPI: 3 ports from 65534 on, expected 65535 at most "
           "(--port=N)");
    refuse(OMPI "OMPI_COMM_WORLD_RANK=0", "hosts=a,b",
           "--hosts: found places for 2 processes, Open MPI has started 3");
    refuse("", "hosts=a,b launcher=none", "--hosts and --launcher=none: expected one of them");
    refuse("", "hosts=a,b worker-hosts=c:1", "--hosts and --worker-hosts: expected one of them");
    refuse(OMPI "OMPI_COMM_WORLD_RANK=0", "hosts=a,b,c job=worker",
           "--hosts and --job: expected one of them");
    refuse("RANK=0 WORLD_SIZE=1", "hosts=a,b",
           "--hosts: found places for 2 processes, RANK and WORLD_SIZE has started 1");
    refuse("", "ps=1", "--ps=1: there is no cluster, expected mpirun, srun, torchrun or --hosts");
    refuse(SLURM "SLURM_PROCID=0 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=2,1", "",
           "SLURM_STEP_TASKS_PER_NODE: found 3 tasks on 2 nodes, expected 4 on 2");
    /* spread in a way that is not known: the first rank of the second node is said to be on the first */
    refuse(SLURM "SLURM_PROCID=2 SLURM_NODEID=0 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=2(x2)",
           "",
           "Slurm: 4 processes, and nothing says where they are; expected MASTER_ADDR, the host of the first "
           "one, "
           "with --ps=1; or --hosts (--launcher=none: alone)");
    refuse("TF_CONFIG={\"sparseCluster\":{\"worker\":{\"1\":\"w:1\"},\"ps\":[\"p:1\"]},\"task\":{\"type\":"
           "\"worker\","
           "\"index\":1}}",
           "",
           "TF_CONFIG: a sparse cluster, whose workers may come and go, is not understood; expected all "
           "addresses: a "
           "TFJob without enableDynamicWorker");
    refuse(
        "TF_CONFIG={\"cluster\":{\"worker\":{\"1\":\"w:1\"},\"ps\":[\"p:1\"]},\"task\":{\"type\":\"worker\","
        "\"index\":1}}",
        "",
        "TF_CONFIG: a sparse cluster, whose workers may come and go, is not understood; expected all "
        "addresses: a "
        "TFJob without enableDynamicWorker");
}

/* --- ports, devices, cores --- */

static int port_of(const char *in) {
    struct error error = {0};
    struct cluster cluster;
    const int code = resolve(&cluster, in, "", &error);
    const int port = code == OK ? cluster.workers.list[0].port : -1;
    CHECK(code == OK, "%s", error.words);
    cluster_free(&cluster);
    return port;
}

/* The same for all of a job, not in the range that the kernel gives away, and mostly another for another job.
 */
static void test_ports(void) {
    int same = 0, before = 0;
    CHECK(port_of(OMPI "OMPI_COMM_WORLD_RANK=0") == port_of(OMPI "OMPI_COMM_WORLD_RANK=2"),
          "a job has two ports");
    for (int step = 0; step < 40; step++) {
        char in[300];
        snprintf(
            in, sizeof in,
            "SLURM_JOB_ID=%d SLURM_STEP_ID=%d SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n",
            1000 + step / 2, step % 2);
        const int port = port_of(in);
        CHECK(port >= 1024 && port + 127 < 32768, "port %d", port);
        same += port == before;
        before = port;
    }
    CHECK(same <= 2, "%d of 40 jobs have the port of the one before", same);
    /* nothing says the number of the job: its launcher is the parent of all */
    const char *const one = "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2",
                      *other = "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2";
    CHECK(port_of(one) == port_of(other), "ports %d and %d", port_of(one), port_of(other));
}

static void expect_here(const char *in, const char *typed, int here, int turn) {
    struct error error = {0};
    struct cluster cluster;
    CHECK(resolve(&cluster, in, typed, &error) == OK, "%s", error.words);
    cluster.cores = 0;
    CHECK(cluster_workers_here(&cluster) == here && cluster.turn == turn,
          "in \"%s\" %s: %d workers here, this is %d, "
          "expected %d and %d",
          in, typed, cluster_workers_here(&cluster), cluster.turn, here, turn);
    cluster_free(&cluster);
}

/* Workers of a machine share its cores and take its GPUs in turn; parameter servers take none. */
static void test_here(void) {
    expect_here(OMPI "OMPI_COMM_WORLD_RANK=2", "ps=1 port=1", 2, 1);
    expect_here(OMPI "OMPI_COMM_WORLD_RANK=2", "port=1", 3, 2);
    expect_here(OMPI "OMPI_COMM_WORLD_RANK=0", "ps=1 port=1", 0, 0);
    static const char on_two[] =
        "RANK=%d WORLD_SIZE=4 LOCAL_RANK=%d LOCAL_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1";
    const int expected[4][2] = {{0, 0}, {1, 0}, {2, 0}, {2, 1}};
    for (int rank = 0; rank < 4; rank++) {
        char in[200];
        snprintf(in, sizeof in, on_two, rank, rank % 2);
        expect_here(in, "ps=1", expected[rank][0], expected[rank][1]);
    }
    expect_here(SLURM
                "SLURM_PROCID=3 SLURM_NODEID=1 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=2(x2)",
                "port=9", 2, 1);
}

/* A process that was bound to cores of its own shares them with nobody. */
static void test_bound(void) {
    struct error error = {0};
    struct cluster cluster;
    struct cores own;
    world_cores(&own);
    CHECK(resolve(&cluster, OMPI "OMPI_COMM_WORLD_RANK=2", "port=1", &error) == OK, "%s", error.words);
    CHECK(cluster.cores >= own.count, "the launcher has %d cores, this process %d", cluster.cores, own.count);
    const int launchers_cores[] = {own.count, 2 * own.count, 3 * own.count, 4 * own.count};
    const int sharing[] = {3, 2, 1, 1};
    for (int i = 0; i < 4; i++) {
        cluster.cores = launchers_cores[i];
        CHECK(cluster_workers_here(&cluster) == sharing[i], "%d of %d cores: %d share them, expected %d",
              own.count, cluster.cores, cluster_workers_here(&cluster), sharing[i]);
    }
    cluster_free(&cluster);
}

/* --- lists --- */

static void expect_list(bool slots, const char *list, const char *shown) {
    struct error error = {0};
    struct places places = {0};
    char found[SHOWN_BYTES] = "";
    int used = 0;
    const int code = slots ? places_read_slots(&places, list, "LIST", &error)
                           : places_read_nodes(&places, list, "LIST", &error);
    for (int i = 0; i < places.count && code == OK; i++)
        used += snprintf(found + used, SHOWN_BYTES - (size_t)used, i ? " %s" : "%s", places.host[i]);
    CHECK(strcmp(code == OK ? found : error.words, shown) == 0, "%s: \"%s\", expected \"%s\"", list,
          code == OK ? found : error.words, shown);
    places_free(&places);
}

static void test_lists(void) {
    expect_list(false, "n1", "n1");
    expect_list(false, "node[1-3,08],login", "node1 node2 node3 node08 login");
    expect_list(false, "r[1-2]n[09-10]x,a.b-c_d", "r1n09x r1n10x r2n09x r2n10x a.b-c_d");
    expect_list(false, "n[1,3,5]", "n1 n3 n5");
    expect_list(false, "n[099-101]", "n099 n100 n101");
    expect_list(true, "a,b:2", "a b b");
    expect_list(true, "10.0.0.1:2 , n[1-2]:2,[::1]:2,[fe80::1%eth0]",
                "10.0.0.1 10.0.0.1 n1 n1 n2 n2 ::1 ::1 fe80::1%eth0");
    const char *const wrong_names[] = {"n[1-", "n[]",    "n[2-1]",    "n[1-2",
                                       "n[a]", "n[1;2]", "n[1-2000]", "n[1-9999999999]"};
    for (size_t i = 0; i < sizeof wrong_names / sizeof *wrong_names; i++) {
        char words[200];
        snprintf(words, sizeof words, "LIST: \"%s\", expected names as node[1-3,08]", wrong_names[i]);
        expect_list(false, wrong_names[i], words);
    }
    expect_list(false, "a,,b", "LIST: a host is empty, expected names with commas between");
    expect_list(false, "", "LIST: a host is empty, expected names with commas between");
    expect_list(true, "-oProxyCommand", "LIST: \"-oProxyCommand\" is not a host");
    expect_list(true, "a;b", "LIST: \"a;b\" is not a host");
    expect_list(true, "[::1", "LIST: \"[::1\" is not a host");
    expect_list(true, "a:0", "LIST: \"a:0\": found \"0\" processes, expected 1 to 1024 (ports: --port)");
    expect_list(true, "a:2222",
                "LIST: \"a:2222\": found \"2222\" processes, expected 1 to 1024 (ports: --port)");
    expect_list(true, "a:1000,b:25", "LIST: found more than 1024 processes");
}

static void expect_counts(const char *list, int count, int sum) {
    struct error error = {0};
    int counts[8], found = 0, all = 0;
    const int code = places_read_counts(counts, 8, &found, list, "LIST", &error);
    for (int i = 0; i < found && code == OK; i++) all += counts[i];
    CHECK(code == (count < 0 ? ERROR_USAGE : OK) && (count < 0 || (found == count && all == sum)),
          "%s: %d counts, together %d (%s)", list, found, all, error.words);
}

static void test_counts(void) {
    expect_counts("3,1", 2, 4);
    expect_counts("2(x3)", 3, 6);
    expect_counts("2(x3),1", 4, 7);
    const char *const wrong[] = {"", "a", "2(x", "2(x3", "2(x0)", "1,", "1;2", "1(x9)", "-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) expect_counts(wrong[i], -1, 0);
}

int main(void) {
    test_one_machine();
    test_torchrun();
    test_several_machines();
    test_one_inside_another();
    test_alone();
    test_order();
    test_refused();
    test_ports();
    test_here();
    test_bound();
    test_lists();
    test_counts();
    return check_end();
}
