/* Ranks of NCCL's stand-in that are in several processes. Each has a file, which only it writes: how many
 * sums it has given its values for, how many it has made as their root, and the values that it has given
 * last, which stay until the root of that sum has taken them. The files are in the folder STANDIN_NCCL. */
#ifndef STANDIN_FAR_RANKS_HH
#define STANDIN_FAR_RANKS_HH

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

struct far_ranks {
    struct head {
        uint64_t given, taken, count;
    };
    struct pending_sum {            /* begun, and not known to be done */
        std::shared_ptr<bool> held; /* its end, on the stream */
        uint64_t number;
        int root;
        size_t count;
        bool endless;
    };
    std::string path;
    int rank;
    std::vector<int> files; /* [ranks] -1: not there yet */
    head own = {};
    uint64_t begun = 0;
    std::deque<pending_sum> pending;
    bool aborted = false;

    far_ranks(const std::string &id, int rank, int ranks)
        : path(std::string(getenv("STANDIN_NCCL")) + "/" + id + "."), rank(rank),
          files(static_cast<size_t>(ranks), -1) {
        const int file = open(name(rank).c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
        files[static_cast<size_t>(rank)] = file;
        tell();
    }
    ~far_ranks() {
        for (const int file : files)
            if (file >= 0) close(file);
        unlink(name(rank).c_str());
    }
    far_ranks(const far_ranks &) = delete;

    std::string name(int r) const { return path + std::to_string(r); }
    void write_at(const void *bytes, size_t count, off_t at) const {
        if (pwrite(files[static_cast<size_t>(rank)], bytes, count, at) != static_cast<ssize_t>(count))
            ::abort();
    }
    void tell() const { write_at(&own, sizeof own, 0); }
    head head_of(int r) const {
        head there = {};
        if (pread(files[static_cast<size_t>(r)], &there, sizeof there, 0) != sizeof there) there = {};
        return there;
    }

    void give(uint64_t number, const float *values, size_t count) {
        if (aborted) return;
        write_at(values, count * sizeof *values, sizeof own);
        own.given = number;
        own.count = count;
        tell();
    }
    /* Added from the last rank to the first. */
    void take(uint64_t number, const float *values, float *out, size_t count, bool mean) {
        std::vector<float> total(count), theirs(count);
        const float factor = mean ? 1.0f / static_cast<float>(files.size()) : 1.0f;
        for (size_t r = files.size(); r-- > 0;) {
            const bool here = static_cast<int>(r) == rank;
            if (!here && pread(files[r], theirs.data(), count * sizeof(float), sizeof own) < 0) ::abort();
            for (size_t i = 0; i < count; i++) total[i] += factor * (here ? values[i] : theirs[i]);
        }
        for (size_t i = 0; i < count; i++) out[i] = total[i];
        own.taken = number;
        tell();
    }

    bool is_ready(const pending_sum &sum) const {
        if (sum.endless) return false;
        if (rank != sum.root) return head_of(sum.root).taken >= sum.number;
        for (size_t r = 0; r < files.size(); r++) {
            const head there = head_of(static_cast<int>(r));
            if (there.given < sum.number || (there.given == sum.number && there.count != sum.count))
                return false;
        }
        return true;
    }
    /* Looks at the others' files. Whether all have come. */
    bool progress() {
        bool all = true;
        for (size_t r = 0; r < files.size(); r++) {
            if (files[r] < 0) files[r] = open(name(static_cast<int>(r)).c_str(), O_RDONLY);
            all = all && files[r] >= 0;
        }
        while (all && !pending.empty() && is_ready(pending.front())) {
            *pending.front().held = false;
            pending.pop_front();
        }
        return all;
    }
    void abort() {
        aborted = true;
        for (const pending_sum &sum : pending) *sum.held = false;
        pending.clear();
    }
};

#endif
