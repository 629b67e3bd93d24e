/* The encrypted link: TLS 1.3 with a key that both sides have been given (RFC 8446, 2.2), or with
 * certificates that both show (certificates.c); and fresh keys for each connection (psk_dhe_ke), so that a
 * key that is stolen later opens no recording. Who does not hold the key, or a certificate, gets no further
 * than the handshake. There are no tickets and no early data.
 *
 * The handshake goes on within the first calls of send and receive, which never block: nobody waits for a
 * stranger. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "certificates.h"
#include "endpoint_parts.h"
#include "link.h"

enum {
    RECORD_BYTES = 16 << 10, /* most that TLS puts into one */
    RECORDS = 8,             /* that go to the kernel in one call, and come from it */
    WIRE_BYTES = RECORDS * (RECORD_BYTES + 256),
    KEY_RECORDS = 4096 /* after so many a sender takes the next key; AES-GCM is good for 2^24 */
};
static const char identity[] = "trainer"; /* of the key; goes over the wire in clear */
static const unsigned char cipher_id[] = {0x13, 0x01};
static const char cipher_name[] = "TLS_AES_128_GCM_SHA256";

struct tls {
    SSL_CTX *context;
    BIO_METHOD *socket; /* a socket that never blocks and raises no SIGPIPE */
    bool certified;     /* there are certificates instead of the key */
    uint8_t key[ENDPOINT_KEY_BYTES];
};

struct tls_link {
    SSL *ssl;
    struct lock lock;                      /* of ssl, which one thread at a time may use */
    int records;                           /* sent with the present key */
    bool certified, accepted, offered_key; /* offered_key: the peer has a key, where certificates are used */
    bool shaken;  /* the handshake is done; OpenSSL forgets it when something goes wrong later */
    uint8_t *out; /* [WIRE_BYTES] encrypted, for the kernel to take: */
    size_t out_begin, out_end;
    uint8_t *in; /* [WIRE_BYTES] as it came, for OpenSSL to take: */
    size_t in_begin, in_end;
    char why[200]; /* it is broken, and stays so */
};

/* --- the key --- */

static SSL_SESSION *make_session(SSL *ssl) {
    const struct tls *tls = SSL_get_app_data(ssl);
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_id);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session && cipher && SSL_SESSION_set1_master_key(session, tls->key, sizeof tls->key) &&
        SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* The connecting side. */
static int use_key(SSL *ssl, const EVP_MD *digest, const unsigned char **id, size_t *id_bytes,
                   SSL_SESSION **session) {
    (void)digest; /* there is one cipher */
    *id = (const unsigned char *)identity;
    *id_bytes = sizeof identity - 1;
    *session = make_session(ssl);
    return *session != NULL;
}

/* The accepting side; none for another identity. */
static int find_key(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **session) {
    *session = NULL;
    if (id_bytes != sizeof identity - 1 || memcmp(id, identity, id_bytes) != 0) return 1;
    *session = make_session(ssl);
    return *session != NULL;
}

/* The accepting side, with certificates: none, and it is noted. */
static int note_key(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **session) {
    struct tls_link *link = ((struct endpoint *)BIO_get_data(SSL_get_rbio(ssl)))->state;
    link->offered_key = id_bytes == sizeof identity - 1 && memcmp(id, identity, id_bytes) == 0;
    *session = NULL;
    return 1;
}

/* --- the socket, as OpenSSL sees it --- */

/* Records go to the kernel and come from it several at a time. OpenSSL can read ahead by itself, but then
 * moves all that is left to the front of its buffer at each record. */

static int put_out(BIO *bio, const char *bytes, int count) {
    struct tls_link *link = ((struct endpoint *)BIO_get_data(bio))->state;
    const size_t room = WIRE_BYTES - link->out_end, taken = (size_t)count < room ? (size_t)count : room;
    BIO_clear_retry_flags(bio);
    memcpy(link->out + link->out_end, bytes, taken);
    link->out_end += taken;
    if (taken > 0) return (int)taken;
    BIO_set_retry_write(bio);
    return -1;
}

static int take_in(BIO *bio, char *bytes, int count) {
    const struct endpoint *endpoint = BIO_get_data(bio);
    struct tls_link *link = endpoint->state;
    BIO_clear_retry_flags(bio);
    if (link->in_begin == link->in_end) {
        const ssize_t found = endpoint_socket_receive(endpoint, link->in, WIRE_BYTES);
        if (found < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
        if (found <= 0) return (int)found;
        link->in_begin = 0;
        link->in_end = (size_t)found;
    }
    const size_t there = link->in_end - link->in_begin;
    const size_t taken = (size_t)count < there ? (size_t)count : there;
    memcpy(bytes, link->in + link->in_begin, taken);
    link->in_begin += taken;
    return (int)taken;
}

/* Gives the kernel what it takes. 0: all of it; LINK_AGAIN: not yet all; LINK_ENDED. */
static ssize_t flush(const struct endpoint *endpoint, struct tls_link *link) {
    while (link->out_begin < link->out_end) {
        const struct iovec part = {link->out + link->out_begin, link->out_end - link->out_begin};
        const ssize_t sent = endpoint_socket_send(endpoint, &part, 1);
        if (sent < 0) return errno == EAGAIN || errno == EINTR ? LINK_AGAIN : LINK_ENDED;
        link->out_begin += (size_t)sent;
    }
    link->out_begin = link->out_end = 0;
    return 0;
}

static long control_socket(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* --- what all links share --- */

static int fail_ssl(struct error *error) {
    const char *why = ERR_reason_error_string(ERR_get_error());
    return error_set(error, ERROR_DEVICE, "encryption: %s", why ? why : "OpenSSL has no memory");
}

static bool set_up(struct tls *tls) {
    SSL_CTX *context = tls->context = SSL_CTX_new(TLS_method());
    tls->socket = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "socket");
    if (!context || !tls->socket || !BIO_meth_set_write(tls->socket, put_out) ||
        !BIO_meth_set_read(tls->socket, take_in) || !BIO_meth_set_ctrl(tls->socket, control_socket))
        return false;
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) && SSL_CTX_set_num_tickets(context, 0) &&
           SSL_CTX_set_ciphersuites(context, cipher_name);
}

static int open_any(struct tls **out, struct error *error) {
    *out = NULL;
    RETURN_IF(memory_array(out, 1, "encryption", error));
    ERR_clear_error();
    if (set_up(*out)) return OK;
    tls_close(*out);
    *out = NULL;
    return fail_ssl(error);
}

int tls_open(struct tls **out, const uint8_t *key, struct error *error) {
    RETURN_IF(open_any(out, error));
    memcpy((*out)->key, key, sizeof(*out)->key);
    SSL_CTX_set_psk_use_session_callback((*out)->context, use_key);
    SSL_CTX_set_psk_find_session_callback((*out)->context, find_key);
    return OK;
}

int tls_open_certified(struct tls **out, const struct endpoint_certificates *files, struct error *error) {
    RETURN_IF(open_any(out, error));
    (*out)->certified = true;
    SSL_CTX_set_psk_find_session_callback((*out)->context, note_key);
    const int code = certificates_use((*out)->context, files, error);
    if (code == OK) return OK;
    tls_close(*out);
    *out = NULL;
    return code;
}

void tls_close(struct tls *tls) {
    if (!tls) return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->socket);
    OPENSSL_cleanse(tls->key, sizeof tls->key);
    memory_free(tls);
}

/* --- one link --- */

static void close_link(struct endpoint *endpoint) {
    struct tls_link *link = endpoint->state;
    if (!link) return;
    SSL_free(link->ssl);
    memory_free(link->in);
    memory_free(link->out);
    memory_free(link);
    endpoint->state = NULL;
}

static int open_link(struct endpoint *endpoint, bool accepted, struct error *error) {
    struct tls *tls = endpoint_tls(endpoint->world);
    struct tls_link *link = NULL;
    RETURN_IF(memory_array(&link, 1, "an encrypted connection", error));
    endpoint->state = link;
    endpoint->send_waits = POLLOUT;
    endpoint->receive_waits = POLLIN;
    lock_open(&link->lock, endpoint->world);
    link->accepted = accepted;
    link->certified = tls->certified;
    if (memory_array(&link->out, WIRE_BYTES, "an encrypted connection", error) != OK ||
        memory_array(&link->in, WIRE_BYTES, "an encrypted connection", error) != OK) {
        close_link(endpoint);
        return error->code;
    }
    ERR_clear_error();
    link->ssl = SSL_new(tls->context);
    BIO *bio = link->ssl ? BIO_new(tls->socket) : NULL;
    if (!bio) {
        close_link(endpoint);
        return fail_ssl(error);
    }
    BIO_set_data(bio, endpoint);
    BIO_set_init(bio, 1);
    SSL_set_bio(link->ssl, bio, bio);
    SSL_set_app_data(link->ssl, tls);
    if (accepted)
        SSL_set_accept_state(link->ssl);
    else
        SSL_set_connect_state(link->ssl);
    /* Who shows a certificate instead of the key is refused. */
    if (!accepted && !tls->certified) SSL_set_verify(link->ssl, SSL_VERIFY_PEER, NULL);
    return OK;
}

/* With a key. An accepting side learns in the handshake that there is none, or another one; a connecting one
 * is told by an alert that it was refused, and no more. False: there is nothing to add. */
static bool describe_key(struct text *words, const struct tls_link *link, int number) {
    if (number == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        text_add(words, "shows a certificate, expected the key that is used here");
        return false;
    }
    text_add(words, link->accepted ? "does not hold the key that is used here"
                                   : "does not accept the key that is used here");
    return number != SSL_R_BINDER_DOES_NOT_VERIFY && number != SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER;
}

/* With certificates. The connecting side has done its part of the handshake when it is told that its own was
 * refused. */
static bool describe_certificate(struct text *words, const struct tls_link *link, int number) {
    if (link->offered_key) {
        text_add(words, "has a key, expected a certificate of the CA that is used here");
        return false;
    }
    switch (number) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        text_add(words, "its certificate ");
        certificates_describe(words, SSL_get_verify_result(link->ssl));
        return false;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        text_add(words, "shows no certificate, expected one of the CA that is used here");
        return false;
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        text_add(words, "says that the certificate of this side has expired");
        return false;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        text_add(words, "says that another CA has signed the certificate of this side");
        return false;
    default:
        text_add(words, number >= SSL_AD_REASON_OFFSET ? "does not accept the certificate of this side"
                                                       : "agrees on no certificates");
        return true;
    }
}

/* What is changed after the handshake, here or on the other side, which says so by an alert. */
static bool describe_change(struct text *words, int number) {
    if (number == SSL_R_SSLV3_ALERT_BAD_RECORD_MAC)
        text_add(words, "says that what came there is not what was encrypted here");
    else
        text_add(words, number >= SSL_AD_REASON_OFFSET ? "has ended the connection"
                                                       : "what came is not what was encrypted");
    return number != SSL_R_SSLV3_ALERT_BAD_RECORD_MAC;
}

static bool is_of_certificates(int number) {
    return number == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
           number == SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE ||
           number == SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED ||
           number == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED ||
           number == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN || number == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
           number == SSL_R_TLSV1_ALERT_DECRYPT_ERROR || number == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED;
}

/* What went wrong, for people. */
static void describe(struct tls_link *link, unsigned long code) {
    const char *reason = ERR_reason_error_string(code);
    const int number = ERR_GET_REASON(code);
    struct text words = text_into(link->why, sizeof link->why);
    bool adds = false;
    if (link->shaken && !(link->certified && is_of_certificates(number)))
        adds = describe_change(&words, number);
    else if (number == SSL_R_WRONG_VERSION_NUMBER || number == SSL_R_HTTP_REQUEST)
        text_add(&words, "speaks without encryption, expected %s",
                 link->certified ? "a certificate" : "the key that is used here");
    else if (link->certified)
        adds = describe_certificate(&words, link, number);
    else
        adds = describe_key(&words, link, number);
    if (reason && adds) text_add(&words, " (%s)", reason);
}

/* Who speaks in clear is told so in clear, by the alert of any TLS server; OpenSSL sends none. */
static void answer_clear(struct tls_link *link, unsigned long code) {
    if (!link->accepted || link->shaken || link->out_end > 0) return;
    if (ERR_GET_REASON(code) != SSL_R_WRONG_VERSION_NUMBER) return;
    memcpy(link->out, endpoint_alert, sizeof endpoint_alert);
    link->out_end = sizeof endpoint_alert;
}

/* A call of OpenSSL moved nothing. What it may have put out, as in the handshake, goes first. */
static ssize_t judge(const struct endpoint *endpoint, struct tls_link *link, int result, short *waits,
                     const char **why) {
    const int found = SSL_get_error(link->ssl, result);
    const unsigned long code = ERR_peek_error();
    if (found == SSL_ERROR_SSL) answer_clear(link, code);
    const ssize_t flushed = flush(endpoint, link);
    *waits = flushed == LINK_AGAIN ? POLLIN | POLLOUT : POLLIN;
    if (found == SSL_ERROR_WANT_READ || found == SSL_ERROR_WANT_WRITE)
        return flushed == LINK_ENDED ? LINK_ENDED : LINK_AGAIN;
    if (found != SSL_ERROR_SSL) return LINK_ENDED;
    describe(link, code);
    *why = link->why;
    return LINK_BROKEN;
}

/* The handshake, as far as it gets now; what OpenSSL gave. Who else waits on this endpoint waits for bytes
 * that have been taken here, and looks again. */
static int shake(const struct endpoint *endpoint, struct tls_link *link) {
    if (link->shaken) return 1;
    const int result = SSL_do_handshake(link->ssl);
    link->shaken = result == 1;
    if (link->shaken) endpoint_socket_wake(endpoint);
    return result;
}

/* Up to a record, from as many parts as it takes; offset: in all of them. *out: where it is: where a part has
 * all of it, or copied into `record`. */
static int gather(uint8_t record[RECORD_BYTES], const struct iovec *parts, size_t count, size_t offset,
                  const uint8_t **out) {
    size_t used = 0;
    *out = record;
    for (; count > 0 && offset >= parts->iov_len; parts++, count--) offset -= parts->iov_len;
    if (count > 0 && parts->iov_len - offset >= RECORD_BYTES) {
        *out = (const uint8_t *)parts->iov_base + offset;
        return RECORD_BYTES;
    }
    for (size_t i = 0; i < count && used < RECORD_BYTES; i++) {
        const size_t skipped = offset < parts[i].iov_len ? offset : parts[i].iov_len;
        const size_t room = RECORD_BYTES - used, left = parts[i].iov_len - skipped;
        const size_t bytes = left < room ? left : room;
        if (bytes > 0) memcpy(record + used, (const uint8_t *)parts[i].iov_base + skipped, bytes);
        used += bytes;
        offset -= skipped;
    }
    return (int)used;
}

/* Where it cannot be done now, as with a record that is half written, the next record tries again. */
static void update_key(struct tls_link *link) {
    if (SSL_key_update(link->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
        link->records = 0;
    else
        ERR_clear_error(); /* it would be taken for an error of the next call */
}

/* Encrypts as much as `out` has room for; in endpoint->held what is there, which is not counted as sent
 * before `out` is empty. What SSL_write gave for the last record, if it is not there. */
static int write_records(struct endpoint *endpoint, struct tls_link *link, const struct iovec *parts,
                         size_t count) {
    uint8_t record[RECORD_BYTES];
    for (int i = 0; i < RECORDS; i++) {
        if (link->records >= KEY_RECORDS) update_key(link);
        const uint8_t *from;
        const int bytes = gather(record, parts, count, endpoint->held, &from);
        const int sent = bytes > 0 ? SSL_write(link->ssl, from, bytes) : 0;
        if (sent <= 0) return sent;
        link->records++;
        endpoint->held += (size_t)sent;
    }
    return 1;
}

/* The peer has closed the connection, and may have said before why. */
static ssize_t hear_alert(struct tls_link *link, const char **why) {
    char byte;
    const int found = SSL_peek(link->ssl, &byte, 1);
    if (found > 0 || SSL_get_error(link->ssl, found) != SSL_ERROR_SSL) return LINK_ENDED;
    describe(link, ERR_peek_error());
    *why = link->why;
    return LINK_BROKEN;
}

static ssize_t send_locked(struct endpoint *endpoint, struct tls_link *link, const struct iovec *parts,
                           size_t count, const char **why) {
    int result = 1;
    ERR_clear_error();
    *why = link->why;
    if (link->why[0]) return LINK_BROKEN;
    if (endpoint->held == 0 && link->out_end > 0) { /* of a message that counts as sent */
        const ssize_t before = flush(endpoint, link);
        endpoint->send_waits = POLLOUT;
        if (before != 0) return before == LINK_ENDED ? hear_alert(link, why) : before;
    }
    if (endpoint->held == 0) result = shake(endpoint, link);
    if (endpoint->held == 0 && result == 1) result = write_records(endpoint, link, parts, count);
    if (endpoint->held == 0) return judge(endpoint, link, result, &endpoint->send_waits, why);
    const ssize_t flushed = flush(endpoint, link);
    endpoint->send_waits = POLLOUT;
    if (flushed == LINK_ENDED) return hear_alert(link, why);
    if (flushed != 0) return flushed;
    const ssize_t sent = (ssize_t)endpoint->held;
    endpoint->held = 0;
    return sent;
}

static ssize_t send_bytes(struct endpoint *endpoint, const struct iovec *parts, size_t count,
                          const char **why) {
    struct tls_link *link = endpoint->state;
    lock_take(&link->lock);
    const ssize_t sent = send_locked(endpoint, link, parts, count, why);
    lock_release(&link->lock);
    return sent;
}

static ssize_t receive_locked(struct endpoint *endpoint, struct tls_link *link, uint8_t *buffer, size_t bytes,
                              const char **why) {
    size_t used = 0;
    ERR_clear_error();
    *why = link->why;
    if (link->why[0]) return LINK_BROKEN;
    int found = shake(endpoint, link);
    while (found > 0 && used < bytes) {
        const size_t room = bytes - used;
        found = SSL_read(link->ssl, buffer + used, room < WIRE_BYTES ? (int)room : WIRE_BYTES);
        if (found <= 0) break;
        used += (size_t)found;
    }
    if (used == 0) return judge(endpoint, link, found, &endpoint->receive_waits, why);
    if (found <= 0 && SSL_get_error(link->ssl, found) == SSL_ERROR_SSL) /* OpenSSL says why only once */
        judge(endpoint, link, found, &endpoint->receive_waits, why);
    return (ssize_t)used;
}

static ssize_t receive_bytes(struct endpoint *endpoint, void *buffer, size_t bytes, const char **why) {
    struct tls_link *link = endpoint->state;
    lock_take(&link->lock);
    const ssize_t found = receive_locked(endpoint, link, buffer, bytes, why);
    lock_release(&link->lock);
    return found;
}

static void finish(struct endpoint *endpoint) {
    struct tls_link *link = endpoint->state;
    lock_take(&link->lock);
    ERR_clear_error();
    if (!link->why[0] && link->shaken && !(SSL_get_shutdown(link->ssl) & SSL_SENT_SHUTDOWN))
        SSL_shutdown(link->ssl);
    const bool ended = flush(endpoint, link) != LINK_AGAIN;
    lock_release(&link->lock);
    if (ended) endpoint_socket_end(endpoint);
}

/* As they come: nobody decrypts them. */
static ssize_t drop_bytes(struct endpoint *endpoint, void *buffer, size_t bytes, const char **why) {
    const ssize_t found = endpoint_socket_receive(endpoint, buffer, bytes);
    (void)why;
    return found > 0 ? found : found < 0 && (errno == EAGAIN || errno == EINTR) ? LINK_AGAIN : LINK_ENDED;
}

const struct link_kind link_tls = {.encrypts = true,
                                   .intact = true,
                                   .open = open_link,
                                   .send = send_bytes,
                                   .receive = receive_bytes,
                                   .drop = drop_bytes,
                                   .finish = finish,
                                   .close = close_link};
