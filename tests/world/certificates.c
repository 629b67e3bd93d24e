/* Certificates instead of a key: whose are taken, whose are refused, and that both sides say why. They are
 * made here, in a folder of their own. Without OpenSSL: that they are refused with words. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/world/endpoint.h"
#include "../check.h"

#define LONG_S 20.0

static void expect(const struct error *error, int code, const char *words) {
    CHECK(error->code == code && strstr(error->words, words), "%d \"%s\", expected %d \"%s\"", error->code,
          error->words, code, words);
}

static struct world *open_world(void) {
    struct world *world = NULL;
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    return world;
}

#if TRAINER_TLS

#    include <arpa/inet.h>
#    include <openssl/pem.h>
#    include <openssl/ssl.h>
#    include <openssl/x509v3.h>

/* --- certificates and keys --- */

struct owner {
    EVP_PKEY *key;
    X509 *certificate;
};

static void add_extension(X509 *one, X509 *issuer, int what, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, one, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
    CHECK(extension && X509_add_ext(one, extension, -1), "%s", value);
    X509_EXTENSION_free(extension);
}

/* Valid from and to so many seconds from now; issuer: NULL: signed by itself, a CA. */
static struct owner make_owner(const char *name, const struct owner *issuer, bool is_ca, long from_s,
                               long to_s) {
    static long serial = 1;
    struct owner owner = {.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
    X509 *one = owner.certificate;
    X509_NAME *called = X509_get_subject_name(one);
    const struct owner *by = issuer ? issuer : &owner;
    X509_set_version(one, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(one), serial++);
    X509_gmtime_adj(X509_getm_notBefore(one), from_s);
    X509_gmtime_adj(X509_getm_notAfter(one), to_s);
    X509_NAME_add_entry_by_txt(called, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(one, X509_get_subject_name(by->certificate));
    X509_set_pubkey(one, owner.key);
    if (is_ca) add_extension(one, by->certificate, NID_basic_constraints, "critical,CA:TRUE");
    CHECK(X509_sign(one, by->key, EVP_sha256()) > 0, "%s", name);
    return owner;
}

static void free_owner(struct owner *owner) {
    EVP_PKEY_free(owner->key);
    X509_free(owner->certificate);
}

static FILE *create(const char *path) {
    FILE *file = fopen(path, "w");
    CHECK(file, "%s", path);
    if (!file) exit(check_end());
    return file;
}

/* NAME.pem, with those that lead to the CA behind it, and NAME.key. */
static void write_owner(const char *name, const struct owner *owner, const struct owner *behind) {
    char path[40];
    snprintf(path, sizeof path, "%s.pem", name);
    FILE *file = create(path);
    PEM_write_X509(file, owner->certificate);
    if (behind) PEM_write_X509(file, behind->certificate);
    fclose(file);
    snprintf(path, sizeof path, "%s.key", name);
    umask(077);
    file = create(path);
    PEM_write_PrivateKey(file, owner->key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
}

enum { DAY = 24 * 60 * 60 };

/* "ca" has signed "a" and "b", and by "between" "far"; "other" has signed "stray". */
static void write_all(void) {
    static const char password[] = "a password";
    struct owner ca = make_owner("the CA", NULL, true, -DAY, DAY);
    struct owner other = make_owner("another CA", NULL, true, -DAY, DAY);
    struct owner between = make_owner("below the CA", &ca, true, -DAY, DAY);
    struct owner a = make_owner("a", &ca, false, -DAY, DAY), b = make_owner("b", &ca, false, -DAY, DAY);
    struct owner far = make_owner("far", &between, false, -DAY, DAY);
    struct owner stray = make_owner("a", &other, false, -DAY, DAY);
    struct owner late = make_owner("late", &ca, false, -DAY, -1);
    struct owner early = make_owner("early", &ca, false, DAY / 2, DAY);
    write_owner("ca", &ca, NULL);
    write_owner("other", &other, NULL);
    write_owner("both", &ca, &other);
    write_owner("a", &a, NULL);
    write_owner("b", &b, NULL);
    write_owner("far", &far, &between);
    write_owner("gap", &far, NULL);
    write_owner("stray", &stray, NULL);
    write_owner("late", &late, NULL);
    write_owner("early", &early, NULL);
    FILE *file = create("locked.key");
    PEM_write_PrivateKey(file, a.key, EVP_aes_128_cbc(), (const unsigned char *)password, sizeof password - 1,
                         NULL, NULL);
    fclose(file);
    file = create("damaged.pem");
    fputs("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", file);
    fclose(file);
    file = create("open.key");
    fclose(file);
    chmod("open.key", 0644);
    struct owner *const all[] = {&ca, &other, &between, &a, &b, &far, &stray, &late, &early};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_owner(all[i]);
}

/* --- the files --- */

static void test_files(void) {
    static const struct {
        const char *certificate, *key, *ca, *words;
    } cases[] = {
        {"missing", "a.key", "ca.pem", "missing: No such file or directory"},
        {"a.pem", "missing", "ca.pem", "missing: No such file or directory"},
        {"a.pem", "a.key", "missing", "missing: No such file or directory"},
        {"a.key", "a.key", "ca.pem", "a.key: expected a certificate, as -----BEGIN CERTIFICATE-----"},
        {"a.pem", "a.pem", "ca.pem", "a.pem: expected a private key in PEM, without a password"},
        {"a.pem", "a.key", "a.key", "a.key: expected a certificate, as -----BEGIN CERTIFICATE-----"},
        {"damaged.pem", "a.key", "ca.pem", "damaged.pem: a certificate is damaged"},
        {"a.pem", "a.key", "damaged.pem", "damaged.pem: a certificate is damaged"},
        {"a.pem", "locked.key", "ca.pem", "locked.key: expected a private key in PEM, without a password"},
        {"a.pem", "b.key", "ca.pem", "b.key: is not the key of the certificate in a.pem"},
        {"a.pem", "open.key", "ca.pem", "open.key: others can read this key (mode 644): expected mode 600"},
        {"a.pem", ".", "ca.pem", ".: expected a file with a key"},
        {"late.pem", "late.key", "ca.pem", "late.pem: the certificate has expired (ca.pem)"},
        {"early.pem", "early.key", "ca.pem", "early.pem: the certificate is not valid yet (ca.pem)"},
        {"a.pem", "a.key", "other.pem",
         "a.pem: the certificate is not signed by the CA that is used here (other.pem)"},
        {"gap.pem", "gap.key", "ca.pem",
         "gap.pem: the certificate is not signed by the CA that is used here (ca.pem)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct endpoint_certificates files = {cases[i].certificate, cases[i].key, cases[i].ca};
        struct world *world = open_world();
        struct error error = {0};
        CHECK(endpoint_certify(world, &files, &error) == ERROR_FILE, "case %zu", i);
        expect(&error, ERROR_FILE, cases[i].words);
        world_close(world);
    }
}

/* --- two who meet --- */

/* What a side holds: certificates, a key, or neither. */
struct side {
    const char *name, *ca; /* NAME.pem and NAME.key */
    const uint8_t *key;
};

struct meeting {
    struct endpoint *near;
    struct error near_error, far_error;
    char heard[6];
};

static struct world *open_side(const struct side *side, struct error *error) {
    char certificate[40], key[40];
    struct world *world = open_world();
    if (side->key) CHECK(endpoint_encrypt(world, side->key, error) == OK, "%s", error->words);
    if (!side->name) return world;
    snprintf(certificate, sizeof certificate, "%s.pem", side->name);
    snprintf(key, sizeof key, "%s.key", side->name);
    endpoint_certify(world, &(struct endpoint_certificates){certificate, key, side->ca}, error);
    return world;
}

static void say_word(void *argument) {
    struct meeting *meeting = argument;
    const struct piece piece = {"a word", 6};
    char answer[6];
    if (endpoint_send(meeting->near, "a word", &piece, 1, LONG_S, &meeting->near_error) == OK)
        endpoint_receive(meeting->near, "an answer", answer, 6, LONG_S, &meeting->near_error);
}

/* The near side says a word, which the far one repeats. */
static void meet(struct meeting *meeting, struct world *near_world, struct world *far_world) {
    struct listener *listener = NULL;
    struct endpoint *far = NULL;
    struct world_thread *thread = NULL;
    struct error error = {0};
    char address[40];
    *meeting = (struct meeting){0};
    endpoint_keep_to_tcp(near_world);
    endpoint_keep_to_tcp(far_world);
    CHECK(endpoint_listen(far_world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(near_world, address, &meeting->near, LONG_S, &error) == OK &&
              listener_accept(listener, &far, LONG_S, &error) == OK && far &&
              world_spawn(near_world, "near", NULL, say_word, meeting, &thread, &error) == OK,
          "%s", error.words);
    if (!far) exit(check_end());
    const struct piece piece = {meeting->heard, 6};
    if (endpoint_receive(far, "a word", meeting->heard, 6, LONG_S, &meeting->far_error) == OK)
        endpoint_send(far, "an answer", &piece, 1, LONG_S, &meeting->far_error);
    if (meeting->far_error.code != OK) {
        endpoint_close(far); /* what it has said why goes out before */
        far = NULL;
    }
    world_join(thread);
    CHECK(endpoint_is_encrypted(meeting->near) || meeting->far_error.code != OK, "it is in clear");
    endpoint_close(meeting->near);
    endpoint_close(far);
    listener_close(listener);
}

static void test_meetings(void) {
    static const uint8_t key[ENDPOINT_KEY_BYTES] = "a key of thirty-two bytes, as is";
    static const struct {
        struct side near, far;
        const char *near_words,
            *far_words; /* NULL: it goes well; empty: the near side hears an alert in clear */
    } cases[] = {
        {{"a", "ca.pem", NULL}, {"b", "ca.pem", NULL}, NULL, NULL},
        {{"a", "ca.pem", NULL}, {"a", "ca.pem", NULL}, NULL, NULL}, /* one certificate for all will do */
        {{"far", "ca.pem", NULL}, {"b", "ca.pem", NULL}, NULL, NULL},
        {{"b", "ca.pem", NULL}, {"far", "ca.pem", NULL}, NULL, NULL},
        {{"stray", "both.pem", NULL}, {"b", "both.pem", NULL}, NULL, NULL},
        {{"stray", "other.pem", NULL},
         {"b", "ca.pem", NULL},
         ": its certificate is not signed by the CA that is used here (0 of ",
         ": says that another CA has signed the certificate of this side (0 of 6 bytes of a word"},
        {{"stray", "both.pem", NULL},
         {"b", "ca.pem", NULL},
         ": says that another CA has signed the certificate of this side (0 of ",
         ": its certificate is not signed by the CA that is used here (0 of 6 bytes of a word"},
        {{NULL, NULL, key},
         {"b", "ca.pem", NULL},
         ": shows a certificate, expected the key that is used here (0 of ",
         ": has a key, expected a certificate of the CA that is used here (0 of 6 bytes of a word"},
        {{"a", "ca.pem", NULL},
         {NULL, NULL, key},
         ": does not accept the certificate of this side (",
         ": does not hold the key that is used here ("},
        {{NULL, NULL, NULL},
         {"b", "ca.pem", NULL},
         "",
         ": speaks without encryption, expected a certificate (0 of 6 bytes of a word"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct meeting meeting;
        struct error error = {0};
        struct world *near_world = open_side(&cases[i].near, &error);
        struct world *far_world = open_side(&cases[i].far, &error);
        CHECK(error.code == OK, "case %zu: %s", i, error.words);
        meet(&meeting, near_world, far_world);
        if (cases[i].near_words) {
            if (cases[i].near_words[0]) expect(&meeting.near_error, ERROR_PEER, cases[i].near_words);
            expect(&meeting.far_error, ERROR_PEER, cases[i].far_words);
        } else {
            CHECK(meeting.near_error.code == OK && meeting.far_error.code == OK &&
                      memcmp(meeting.heard, "a word", 6) == 0,
                  "case %zu: %s; %s", i, meeting.near_error.words, meeting.far_error.words);
        }
        world_close(near_world);
        world_close(far_world);
    }
}

/* Who is refused has done its part of the handshake, and may find the connection closed before it has read
 * why: it reads that then. */
static void test_late_alert(void) {
    struct error error = {0};
    struct world *near_world = open_side(&(struct side){"stray", "both.pem", NULL}, &error);
    struct world *far_world = open_side(&(struct side){"b", "ca.pem", NULL}, &error);
    struct listener *listener = NULL;
    struct endpoint *near = NULL, *far = NULL;
    const struct piece piece = {"a word", 6};
    char address[40], byte;
    bool ended = false;
    CHECK(endpoint_listen(far_world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(near_world, address, &near, LONG_S, &error) == OK &&
              listener_accept(listener, &far, LONG_S, &error) == OK && far,
          "%s", error.words);
    if (!far) exit(check_end());
    for (int i = 0; i < 2; i++) {
        endpoint_peek(near, &byte, 1, 0.0, &ended);
        endpoint_peek(far, &byte, 1, 0.0, &ended);
    }
    CHECK(ended, "the certificate is accepted");
    endpoint_close(far);
    for (int i = 0; i < 100 && error.code == OK; i++) {
        endpoint_send(near, "a word", &piece, 1, LONG_S, &error);
        world_sleep(near_world, 0.01);
    }
    expect(&error, ERROR_PEER,
           ": says that another CA has signed the certificate of this side (0 of 6 bytes");
    endpoint_close(near);
    listener_close(listener);
    world_close(near_world);
    world_close(far_world);
}

/* --- strangers --- */

struct stranger {
    int port, version; /* of TLS, the latest it speaks */
};

/* Shows no certificate, and takes any. */
static void connect_without(void *argument) {
    const struct stranger *stranger = argument;
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)stranger->port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    char byte;
    const int end = socket(AF_INET, SOCK_STREAM, 0);
    SSL_set_max_proto_version(ssl, stranger->version);
    CHECK(connect(end, (const struct sockaddr *)&at, sizeof at) == 0 && SSL_set_fd(ssl, end), "a stranger");
    CHECK(SSL_connect(ssl) != 1 || SSL_read(ssl, &byte, 1) <= 0, "it was let in");
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(end);
}

static void test_strangers(void) {
    static const struct {
        int version;
        const char *words;
    } cases[] = {
        {TLS1_3_VERSION, ": shows no certificate, expected one of the CA that is used here (0 of 1 bytes"},
        {TLS1_2_VERSION, ": agrees on no certificates (unsupported protocol) (0 of 1 bytes"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = {0}, why = {0};
        struct world *world = open_side(&(struct side){"a", "ca.pem", NULL}, &error);
        struct listener *listener = NULL;
        struct endpoint *far = NULL;
        struct world_thread *thread = NULL;
        char byte;
        CHECK(endpoint_listen(world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
        struct stranger stranger = {listener_port(listener), cases[i].version};
        CHECK(world_spawn(world, "stranger", NULL, connect_without, &stranger, &thread, &error) == OK &&
                  listener_accept(listener, &far, LONG_S, &error) == OK && far,
              "%s", error.words);
        if (!far) exit(check_end());
        endpoint_receive(far, "a word", &byte, 1, LONG_S, &why);
        expect(&why, ERROR_PEER, cases[i].words);
        endpoint_close(far);
        world_join(thread);
        listener_close(listener);
        world_close(world);
    }
}

/* One whose certificate expires while the process runs, is refused from then on. */
static void test_expiry(void) {
    struct owner ca = make_owner("the CA", NULL, true, -DAY, DAY);
    const struct side late = {"brief", "brief-ca.pem", NULL}, lasting = {"lasting", "brief-ca.pem", NULL};
    struct owner lasts = make_owner("lasting", &ca, false, -DAY, DAY);
    struct world *near_world = NULL;
    struct meeting meeting;
    struct error error;
    write_owner("brief-ca", &ca, NULL);
    write_owner("lasting", &lasts, NULL);
    for (int seconds = 1; seconds < 16; seconds *= 2) { /* it is to live until it has been read */
        struct owner brief = make_owner("brief", &ca, false, -DAY, seconds);
        error = (struct error){0};
        write_owner("brief", &brief, NULL);
        free_owner(&brief);
        near_world = open_side(&late, &error);
        if (error.code == OK) {
            world_sleep(near_world, seconds + 1.1);
            break;
        }
        world_close(near_world);
    }
    struct world *far_world = open_side(&lasting, &error);
    CHECK(error.code == OK, "%s", error.words);
    meet(&meeting, near_world, far_world);
    expect(&meeting.near_error, ERROR_PEER, ": says that the certificate of this side has expired (0 of ");
    expect(&meeting.far_error, ERROR_PEER, ": its certificate has expired (0 of 6 bytes of a word");
    meet(&meeting, far_world, near_world);
    expect(&meeting.near_error, ERROR_PEER, ": its certificate has expired (0 of ");
    expect(&meeting.far_error, ERROR_PEER, ": says that the certificate of this side has expired (0 of ");
    world_close(near_world);
    world_close(far_world);
    free_owner(&lasts);
    free_owner(&ca);
}

static void remove_folder(const char *folder) {
    char command[80];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(chdir("/") == 0 && system(command) == 0, "%s", folder);
}

int main(void) {
    char folder[] = "/tmp/trainer-certificates-XXXXXX";
    CHECK(mkdtemp(folder) && chdir(folder) == 0, "no temporary folder");
    if (check_failures) return check_end();
    write_all();
    test_files();
    test_meetings();
    test_late_alert();
    test_strangers();
    test_expiry();
    remove_folder(folder);
    return check_end();
}

#else

int main(void) {
    struct world *world = open_world();
    struct error error = {0};
    const struct endpoint_certificates files = {"a.pem", "a.key", "ca.pem"};
    CHECK(endpoint_certify(world, &files, &error) == ERROR_USAGE, "%s", error.words);
    expect(&error, ERROR_USAGE, "this build cannot encrypt: install OpenSSL's headers (libssl-dev)");
    world_close(world);
    return check_end();
}
#endif
