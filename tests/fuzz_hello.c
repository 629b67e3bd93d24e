/* Fuzzing of what a host and a worker make of a stranger's bytes before the training begins, and of the terms
 * that come later: clang -fsanitize=fuzzer,address over this file and the library (`make fuzz`). The first
 * byte says what the rest is; it is put into a frame that our own writer seals, since nothing beyond the
 * checksums would be reached otherwise, or goes to a host as it is. The host is a real one, in the simulated
 * world. Whatever comes, no line that a user sees has a control character, a place is given to those alone
 * who are within the cluster, and what is accepted is in its range. */
#include "fuzz.h"

#include <string.h>
#include "../src/base/memory.h"
#include "../src/bridge/guests.h"
#include "../src/bridge/handshake.h"
#include "../src/bridge/lead.h"

enum { MOST = FRAME_HEADER_BYTES + HELLO_BYTES + 4096, TALLIES = 3 };
/* What the first byte says. */
enum what { RAW, HELLO, READY, AFTER_HELLO, LEADER, SETTINGS, WELCOME, FINISH, TALLY, REQUEST, WHATS };
static const char *const kinds[] = {"hellos", "readies", "terms", NULL};

/* --- what is read of a payload --- */

static void check_hello(const struct hello *hello) {
    fuzz_require(hello->task >= 0 && hello->device >= 0 && hello->devices >= 0);
    fuzz_require(memchr(hello->program, '\0', sizeof hello->program) != NULL);
    fuzz_require(memchr(hello->device_name, '\0', sizeof hello->device_name) != NULL);
    fuzz_require(!strpbrk(hello->device_name, ",\n\r\t\"\033"));
}

/* What was understood is written, and read again, to the same bytes. */
static void check_terms(enum what what, const uint8_t *data, size_t bytes) {
    static struct typed typed;
    struct welcome welcome;
    struct finish finish;
    struct error error = {0};
    uint8_t again[FINISH_BYTES];
    struct frame_reader reader = {.bytes = data, .length = bytes};
    struct frame_writer writer = {.bytes = again, .room = sizeof again};
    int code = ERROR_PEER;
    if (what == SETTINGS) code = settings_get(&typed, &reader, "it", &error);
    if (what == WELCOME && (code = welcome_get(&welcome, &reader, "it", &error)) == OK) {
        fuzz_require(welcome.worker >= 0 && welcome.workers >= 0 && welcome.workers <= DEVICES_OF_ALL);
        fuzz_require(welcome_put(&welcome, &writer, &error) == OK && writer.used == bytes &&
                     memcmp(again, data, bytes) == 0);
    }
    if (what == FINISH && (code = finish_get(&finish, &reader, "it", &error)) == OK) {
        fuzz_require(finish.code >= 0 && finish.metric < METRICS && finish.steps >= 0);
        fuzz_require(finish_put(&finish, &writer, &error) == OK && writer.used == bytes);
    }
    fuzz_require(code == OK || (error.code == ERROR_PEER && error.words[0]));
    fuzz.accepted[2] += code == OK;
}

static void check_request(const uint8_t *data, size_t bytes) {
    uint8_t whole[REQUEST_BYTES] = {0}, answer[LOSS_BYTES] = {0};
    struct request request;
    struct error error = {0};
    struct answer got;
    memcpy(whole, data, bytes < sizeof whole ? bytes : sizeof whole);
    memcpy(answer, whole, sizeof answer);
    if (request_get(&request, whole, "it", &error) != OK) return;
    fuzz_require(request.number >= 0 && request.step >= 0 && request.epoch >= 0);
    if (answer_get(&got, &request, answer, "it", &(struct error){0}) == OK) fuzz.accepted[2]++;
}

/* --- a host, and who comes to it --- */

struct scene {
    struct world *world;
    struct address servers[2], workers[2];
    struct cluster cluster;
    struct host host;
    struct endpoint *stranger;
};

static void say(void *argument, const char *words) {
    (void)argument;
    fuzz_require(words[0] != '\0');
    for (const char *c = words; *c; c++) fuzz_require((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void open_scene(struct scene *scene) {
    static struct config config;
    static const struct fingerprint fingerprint = {.examples = 120, .floats = 67, .layout = 5};
    struct error error = {0};
    memset(scene, 0, sizeof *scene);
    option_defaults(config_options, &config);
    for (int i = 0; i < 2; i++) {
        snprintf(scene->servers[i].text, sizeof scene->servers[i].text, "127.0.0.1:%d", 2222 + i);
        snprintf(scene->workers[i].text, sizeof scene->workers[i].text, "127.0.0.1:%d", 2224 + i);
    }
    scene->cluster = (struct cluster){.ps = {.list = scene->servers, .count = 2},
                                      .workers = {.list = scene->workers, .count = 2},
                                      .task = 1};
    fuzz_require(world_open_simulated(&scene->world, 1, &error) == OK);
    scene->host = (struct host){.settings = {.world = scene->world,
                                             .cluster = &scene->cluster,
                                             .config = &config,
                                             .fingerprint = &fingerprint,
                                             .start_s = 10.0,
                                             .timeout_s = 10.0,
                                             .say = say},
                                .guests_most = 8};
    fuzz_require(endpoint_listen(scene->world, "127.0.0.1:2223", &scene->host.listener, &error) == OK);
    fuzz_require(endpoint_connect(scene->world, "127.0.0.1:2223", &scene->stranger, 1.0, &error) == OK);
    struct endpoint *guest = NULL;
    fuzz_require(listener_accept(scene->host.listener, &guest, 1.0, &error) == OK && guest);
    guests_add(&scene->host, &(struct guest){.endpoint = guest, .since_s = world_now(scene->world)});
}

static void hear(struct scene *scene) {
    struct error error = {0};
    bool moved = false;
    fuzz_require(handshake_hear(&scene->host, &moved, &error) == OK);
}

static void close_scene(struct scene *scene) {
    for (int i = 0; i < scene->host.count; i++) {
        const struct peer *peer = &scene->host.peers[i];
        fuzz_require(peer->task >= 0 && peer->task < 2 && peer->device >= 0 && peer->device < peer->devices &&
                     peer->devices <= DEVICES_MOST);
    }
    endpoint_close(scene->stranger);
    host_close(&scene->host);
    world_close(scene->world);
}

static void send_frame(struct scene *scene, enum frame_type type, uint32_t flags, const uint8_t *data,
                       size_t bytes) {
    const struct piece piece = {data, bytes};
    struct error ignored = {0};
    frame_write(scene->stranger, type, flags, &piece, 1, 1.0, &ignored);
}

static size_t make_hello(uint8_t bytes[HELLO_BYTES], bool leader) {
    static struct hello hello;
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = HELLO_BYTES};
    hello = (struct hello){.leader = leader, .device = 0, .devices = 1, .process = 9};
    option_defaults(run_options, &hello.agreed);
    memset(&hello.agreed.given, 0, sizeof hello.agreed.given);
    hello.fingerprint = (struct fingerprint){.examples = 120, .floats = 67, .layout = 5};
    snprintf(hello.program, sizeof hello.program, "%s", TRAINER_VERSION);
    snprintf(hello.device_name, sizeof hello.device_name, "cpu:0");
    fuzz_require(hello_put(&hello, &writer, &error) == OK);
    return writer.used;
}

static void say_hello(struct scene *scene, bool leader) {
    static uint8_t bytes[HELLO_BYTES];
    const size_t used = make_hello(bytes, leader);
    send_frame(scene, FRAME_HELLO, 0, bytes, used);
    hear(scene);
}

static void check_host(enum what what, const uint8_t *data, size_t bytes) {
    static struct scene scene;
    static struct hello hello;
    struct frame_reader reader = {.bytes = data, .length = bytes};
    struct error error = {0};
    const struct piece piece = {data, bytes};
    open_scene(&scene);
    if (what != RAW && what != HELLO) say_hello(&scene, what == LEADER);
    if (what == HELLO) send_frame(&scene, FRAME_HELLO, 0, data, bytes);
    if (what == HELLO && hello_get(&hello, &reader, "it", &error) == OK) check_hello(&hello);
    if (what == READY && scene.host.count > 0)
        send_frame(&scene, FRAME_READY, scene.host.peers[0].session, data, bytes);
    if (what == LEADER) send_frame(&scene, FRAME_GOODBYE, 0, data, bytes);
    if (what == RAW || what == AFTER_HELLO)
        endpoint_send(scene.stranger, "bytes", &piece, 1, 1.0, &(struct error){0});
    for (int turn = 0; turn < 4; turn++) hear(&scene);
    fuzz.accepted[0] += what == HELLO && scene.host.count + (scene.host.leader != NULL) > 0;
    fuzz.accepted[1] += what == READY && scene.host.count > 0 && scene.host.peers[0].ready;
    close_scene(&scene);
}

static void check_tallies(const uint8_t *data, size_t bytes) {
    static struct scene scene;
    struct frame_header header;
    struct error error = {0};
    uint64_t values[TALLIES];
    open_scene(&scene);
    send_frame(&scene, FRAME_TALLIES, 0, data, bytes);
    struct endpoint *guest = scene.host.guests[0].endpoint;
    if (frame_read_header(guest, "tallies", MOST, &header, 1.0, &error) == OK &&
        tallies_receive(guest, &header, 1, values, TALLIES, 1.0, &error) == OK)
        fuzz.accepted[2]++;
    close_scene(&scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_count(kinds);
    if (bytes == 0 || bytes > MOST) return 0;
    const enum what what = (enum what)(data[0] % WHATS);
    data++, bytes--;
    if (what <= LEADER)
        check_host(what, data, bytes);
    else if (what == TALLY)
        check_tallies(data, bytes);
    else if (what == REQUEST)
        check_request(data, bytes);
    else
        check_terms(what, data, bytes);
    return 0;
}

/* --- valid ones to start from --- */

static size_t make_sample(enum what what, uint8_t *data, size_t most) {
    static uint8_t bytes[HELLO_BYTES];
    static struct config config;
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    const struct welcome welcome = {.worker = 1, .workers = 2, .begin = 0, .end = 67};
    const struct finish finish = {.code = ERROR_PEER, .words = "because", .steps = 7};
    const struct fingerprint fingerprint = {.examples = 120, .floats = 67, .layout = 5};
    option_defaults(config_options, &config);
    if (what == HELLO) writer.used = make_hello(bytes, false);
    if (what == READY) fingerprint_put(&fingerprint, &writer);
    if (what == SETTINGS) settings_put(&config, &writer, &error);
    if (what == WELCOME) welcome_put(&welcome, &writer, &error);
    if (what == FINISH || what == LEADER) finish_put(&finish, &writer, &error);
    if (what == TALLY || what == REQUEST)
        for (int i = 0; i < 1 + TALLIES; i++) frame_put_u64(&writer, 1);
    if (what == AFTER_HELLO || what == RAW) {
        const struct frame_header header = {.type = FRAME_HEARTBEAT};
        frame_pack_header(bytes, &header);
        writer.used = FRAME_HEADER_BYTES;
    }
    if (writer.used + 1 > most) return 0;
    data[0] = (uint8_t)what;
    memcpy(data + 1, bytes, writer.used);
    return writer.used + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (bytes < 2 || seed % 8 == 0) {
        const size_t made = make_sample((enum what)(seed / 8 % WHATS), data, most);
        if (made > 0) bytes = made;
        if (seed / 128 % 4 == 0) return bytes;
    }
    const uint8_t what = data[0];
    bytes = LLVMFuzzerMutate(data, bytes, most);
    if (bytes > 0 && seed / 512 % 8 > 0) data[0] = what;
    return bytes;
}
