// Who computes what of a cohort's training. A step of a device is cut into shares, each the gradient of some blocks of
// its batch; the gradients are added in the order of the shares. The cut depends on the batch alone, so the bits do not
// depend on who computed which share.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace feelstream {

// A device in training: which step it is at, and which shares of it are given out and done.
struct Trainee {
    std::int64_t device = 0, step = 0;
    int given = 0, done = 0;
    bool busy = false;
};

// One share for a thread to compute; `slot` names the trainee's place, of which there is one for each thread.
struct Share {
    int slot, number;
    std::int64_t device, step;
};

class Cohort {
public:
    Cohort(std::int64_t devices, std::int64_t steps, int shares, int slots)
        : devices_(devices), steps_(steps), shares_(shares), trainees_(slots) {}

    // The next share, or false when nothing is left. A thread stays with its device; it takes a new one only when there
    // is nothing to do for its own, and helps others only when no device is left that nobody has begun.
    bool take(int& slot, Share& share) {
        std::unique_lock lock(guard_);
        for (;;) {
            if (slot < 0 || !open(slot)) slot = find();
            if (slot >= 0) {
                Trainee& trainee = trainees_[slot];
                share = {slot, trainee.given++, trainee.device, trainee.step};
                return true;
            }
            if (finished_ == devices_) return false;
            wait(lock);
        }
    }

    // True if it was the last share of its step: the caller takes the step, then calls `advance`.
    bool last_of_step(const Share& share) {
        const std::lock_guard lock(guard_);
        return ++trainees_[share.slot].done == shares_;
    }

    // True if that was the device's last step.
    bool advance(const Share& share) {
        const std::lock_guard lock(guard_);
        Trainee& trainee = trainees_[share.slot];
        trainee.given = trainee.done = 0;
        const bool over = ++trainee.step == steps_;
        if (over) trainee.busy = false, ++finished_;
        ++news_;
        if (waiting_) changed_.notify_all();
        return over;
    }

private:
    bool open(int slot) const { return trainees_[slot].busy && trainees_[slot].given < shares_; }

    int find() {
        const int slots = int(trainees_.size());
        if (next_ < devices_)
            for (int slot = 0; slot < slots; ++slot)
                if (!trainees_[slot].busy) {
                    trainees_[slot] = {next_++, 0, 0, 0, true};
                    return slot;
                }
        for (int slot = 0; slot < slots; ++slot)
            if (open(slot)) return slot;
        return -1;
    }

    // A step is short, so news come soon: look for them for a while before sleeping.
    void wait(std::unique_lock<std::mutex>& lock) {
        const std::int64_t seen = news_;
        for (int look = 0; look < 200 && news_ == seen; ++look) {
            lock.unlock();
            std::this_thread::yield();
            lock.lock();
        }
        ++waiting_;
        changed_.wait(lock, [&] { return news_ != seen; });
        --waiting_;
    }

    const std::int64_t devices_, steps_;
    const int shares_;
    std::vector<Trainee> trainees_;
    std::int64_t next_ = 0, finished_ = 0, news_ = 0;
    int waiting_ = 0;
    std::mutex guard_;
    std::condition_variable changed_;
};

}  // namespace feelstream
