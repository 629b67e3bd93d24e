/* See sessions.h. */
#include "sessions.h"

#include <math.h>

#include "../base/memory.h"
#include "../base/rng.h"
#include "../record/progress.h"

#define PAUSE_S 0.2 /* between two sessions: who has ended one may have to close still */
#define LEAST_S 1.0 /* for all to come, where less is left */

struct sessions {
    struct typed typed;     /* of the session that runs, as the next */
    struct cluster cluster; /* borrows its lists */
    struct cluster_session session;
    double wait_s;     /* --restart-wait */
    struct error lost; /* what ended the last session that had begun; OK: none has */
};

void session_see(struct cluster_session *session, long updates) {
    long seen = atomic_load_explicit(&session->seen, memory_order_relaxed);
    while (seen < updates && !atomic_compare_exchange_weak(&session->seen, &seen, updates)) {
    }
}

/* In a world of its own, which it may leave stopped. */
static int train_once(struct sessions *sessions, struct world *world, session_train *train, void *argument,
                      bool *abandoned, struct error *error) {
    struct cluster_session *session = &sessions->session;
    RETURN_IF(world_open_beside(&session->world, world, error));
    const int code = train(argument, session, abandoned, error);
    if (!*abandoned) world_close(session->world);
    return code;
}

/* Aloud where --quiet is, too: nothing else says why nothing happens. */
static void say_lost(const struct error *error, double seconds) {
    struct progress progress;
    progress_open(&progress, stderr, false);
    progress_warn(&progress, "lost: %.300s; waiting up to %.6g s for it to come back", error->words, seconds);
}

bool session_is_followed(const struct cluster_session *session, double now) {
    if (atomic_load(&session->over) || world_interrupted()) return false;
    if (atomic_load(&session->begun)) return true;
    return now < session->until_s && (session->again || atomic_load(&session->met));
}

/* Whether another session follows, and then until when: somebody else may be lost before that one begins. */
static bool goes_on(struct sessions *sessions, double now, const struct error *error) {
    struct cluster_session *session = &sessions->session;
    const bool begun = atomic_load(&session->begun);
    if (error->code != ERROR_PEER || !session_is_followed(session, now)) return false;
    if (begun) session->until_s = now + sessions->wait_s;
    if (begun || !session->again) say_lost(error, begun ? sessions->wait_s : round(session->until_s - now));
    if (begun) sessions->lost = *error;
    return true;
}

/* A session that never began has seen nothing. What was said in the one before to this process, or by it, is
 * a recording in the next. */
static void begin_next(struct sessions *sessions, double now) {
    const struct cluster_session *ended = &sessions->session;
    const long seen = atomic_load(&ended->begun) ? atomic_load(&ended->seen) : ended->seen_before;
    sessions->typed.value.start_timeout_s = fmax(ceil(10.0 * (ended->until_s - now)) / 10.0, LEAST_S);
    sessions->typed.given.start_timeout_s = true;
    sessions->cluster.process = rng_mix(sessions->cluster.process, 1);
    sessions->session = (struct cluster_session){.typed = &sessions->typed,
                                                 .cluster = &sessions->cluster,
                                                 .until_s = ended->until_s,
                                                 .again = sessions->lost.code != OK,
                                                 .seen_before = seen};
}

static int train_all(struct sessions *sessions, struct world *world, session_train *train, void *argument,
                     bool *abandoned, struct error *error) {
    while (true) {
        const int code = train_once(sessions, world, train, argument, abandoned, error);
        if (code == OK || *abandoned) return code;
        if (!goes_on(sessions, world_now(world), error)) break;
        world_sleep(world, PAUSE_S);
        begin_next(sessions, world_now(world));
        *error = (struct error){0};
    }
    const bool waited = sessions->lost.code != OK && !atomic_load(&sessions->session.begun);
    if (!waited || error->code != ERROR_PEER || atomic_load(&sessions->session.over)) return error->code;
    const struct error last = *error;
    *error = (struct error){0};
    return error_set(error, ERROR_PEER,
                     "lost: %.220s; not all were back within %g s (--restart-wait): %.220s",
                     sessions->lost.words, sessions->wait_s, last.words);
}

int sessions_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                   session_train *train, void *argument, bool *abandoned, struct error *error) {
    struct sessions *sessions = NULL;
    *abandoned = false;
    RETURN_IF(memory_array(&sessions, 1, "the sessions of a training", error));
    sessions->typed = *typed;
    sessions->cluster = *cluster;
    sessions->session.typed = &sessions->typed;
    sessions->session.cluster = &sessions->cluster;
    sessions->wait_s = typed->value.restart_wait_s;
    sessions->session.until_s = world_now(world) + typed->value.start_timeout_s;
    if (sessions->wait_s > 0.0) {
        train_all(sessions, world, train, argument, abandoned, error);
    } else {
        sessions->session.world = world;
        train(argument, &sessions->session, abandoned, error);
    }
    if (!*abandoned) memory_free(sessions);
    return error->code;
}
