/* The mailbox: a ring of cells, each with a number that says whose turn it is.
 *
 * Cell i of round k may be written when its number is k * capacity + i, and read when it is one more. A
 * sender takes a cell by moving `tail` on, writes the mail, then publishes it through the number; the
 * receiver reads, then frees the cell for the next round. A sender that is delayed between the two hides
 * later mails until it continues; it posts its event after that, so no mail is missed. */
#include "waits.h"

#include <string.h>
#include "../base/memory.h"

int mailbox_open(struct mailbox *mailbox, int capacity, struct error *error) {
    memset(mailbox, 0, sizeof *mailbox);
    uint64_t cells = 2; /* with a single cell "written" and "free for the next round" are the same number */
    while (cells < (uint64_t)capacity) cells *= 2;
    RETURN_IF(memory_array(&mailbox->cells, cells, "a mailbox", error));
    mailbox->capacity = cells;
    for (uint64_t i = 0; i < cells; i++) atomic_init(&mailbox->cells[i].sequence, i);
    return OK;
}

void mailbox_close(struct mailbox *mailbox) {
    memory_free(mailbox->cells);
    memset(mailbox, 0, sizeof *mailbox);
}

bool mailbox_send(struct mailbox *mailbox, struct mail mail) {
    uint64_t tail = atomic_load_explicit(&mailbox->tail, memory_order_relaxed);
    while (true) {
        struct mailbox_cell *cell = &mailbox->cells[tail & (mailbox->capacity - 1)];
        const uint64_t sequence = atomic_load_explicit(&cell->sequence, memory_order_acquire);
        if (sequence < tail) return false; /* a round behind: not read yet */
        if (sequence > tail) {             /* another sender was faster */
            tail = atomic_load_explicit(&mailbox->tail, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&mailbox->tail, &tail, tail + 1,
                                                         memory_order_relaxed, memory_order_relaxed)) {
            cell->mail = mail;
            atomic_store_explicit(&cell->sequence, tail + 1, memory_order_release);
            return true;
        }
    }
}

long mailbox_mails(const struct mailbox *mailbox) {
    const uint64_t head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
    return (long)(atomic_load_explicit(&mailbox->tail, memory_order_relaxed) - head);
}

bool mailbox_has_mail(const struct mailbox *mailbox) {
    const uint64_t head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
    const struct mailbox_cell *cell = &mailbox->cells[head & (mailbox->capacity - 1)];
    return atomic_load_explicit(&cell->sequence, memory_order_acquire) == head + 1;
}

bool mailbox_receive(struct mailbox *mailbox, struct mail *mail) {
    if (!mailbox_has_mail(mailbox)) return false;
    const uint64_t head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
    struct mailbox_cell *cell = &mailbox->cells[head & (mailbox->capacity - 1)];
    *mail = cell->mail;
    atomic_store_explicit(&cell->sequence, head + mailbox->capacity, memory_order_release);
    atomic_store_explicit(&mailbox->head, head + 1, memory_order_relaxed);
    return true;
}
