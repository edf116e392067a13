// Predictions, block by block.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine.hpp"
#include "kernel.hpp"
#include "network.hpp"
#include "threads.hpp"

namespace feelstream {

void Engine::predict(const Samples& samples, const std::int64_t* numbers, std::int64_t count, const float* theta,
                     int threads, float* losses, std::int32_t* classes, double* seconds) const {
    const std::int64_t blocks = (count + lanes - 1) / lanes;
    const int workers = int(std::min<std::int64_t>(seconds ? 1 : threads, blocks));
    // A sample's bits do not depend on how many are computed together; few samples are shared out to all threads.
    const std::int64_t together = std::clamp<std::int64_t>(blocks / std::max(workers, 1), 1, max_together) * lanes;
    std::atomic<std::int64_t> next{0};
    on_threads(workers, [&] {
        const Memory memory = allocate(network_.workspace, guards_);
        Workspace space{memory.get(), seconds, now};
        kernel_->prepare(network_, theta, space);
        for (std::int64_t first; (first = next.fetch_add(together)) < count;) {
            const int size = int(std::min(together, count - first));
            std::int64_t own[max_together * lanes];
            for (int i = 0; i < size; ++i) own[i] = numbers ? numbers[first + i] : first + i;
            kernel_->predict(network_, theta, space, samples, own, size, losses + first, classes + first);
        }
    });
}

Result Engine::evaluate(const Samples& samples, std::int64_t count, const float* theta, int threads,
                        double* seconds) const {
    std::vector<float> losses(count);
    std::vector<std::int32_t> classes(count);
    predict(samples, nullptr, count, theta, threads, losses.data(), classes.data(), seconds);
    // In the order of the samples, whichever thread had them: the sum has the same bits for any `threads`.
    Result result{0, 0};
    for (std::int64_t first = 0; first < count; first += lanes) {
        double loss = 0;
        for (std::int64_t i = first; i < std::min(first + lanes, count); ++i) {
            loss += losses[i];
            result.right += classes[i] == samples.labels[i];
        }
        result.loss_sum += loss;
    }
    return result;
}

}  // namespace feelstream
