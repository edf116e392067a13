// From the data set to a block of the first layer's input, and from logits to losses.
#pragma once
#include <math.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "network.hpp"
#include "vector.hpp"

namespace feelstream {
namespace {

typedef std::uint8_t Bytes __attribute__((vector_size(lanes)));

// Where the next pixel of the input goes: behind a row and a plane there may be zeros to pass over.
class Places {
public:
    Places(const Network& net, float* to) : net_(net), to_(to) {}
    float* next() {
        float* here = to_;
        to_ += lanes;
        if (++column_ == net_.image_columns) {
            column_ = 0, to_ += std::ptrdiff_t(net_.row_gap) * lanes;
            if (++row_ == net_.image_rows) row_ = 0, to_ += std::ptrdiff_t(net_.plane_gap) * lanes;
        }
        return here;
    }

private:
    const Network& net_;
    float* to_;
    int row_ = 0, column_ = 0;
};

// Float features of 16 samples → (value, lane).
inline void gather_values(const Samples& samples, const Network& net, const std::int64_t* numbers, int count,
                          float* input) {
    const float* from[lanes];
    for (int lane = 0; lane < lanes; ++lane)
        from[lane] = samples.values + numbers[lane < count ? lane : 0] * net.pixels;
    Places places(net, input);
    for (int p = 0; p < net.pixels; ++p) {
        float* to = places.next();
        for (int lane = 0; lane < lanes; ++lane) to[lane] = from[lane][p] * samples.scale + samples.shift;
    }
}

// 16 bytes as numbers, normalised. Through memory they would be read in other sizes than they were written, which
// stalls.
inline void normalise(Bytes bytes, float scale, float shift, float* to) {
#if defined(__AVX512F__)
    store(to,
          Vec(_mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, __m128i(bytes)))) * scale + shift);
#elif defined(__AVX2__)
    const __m128i all = __m128i(bytes);
    store(to, Vec(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(all))) * scale + shift);
    store(to + width, Vec(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(all, 8)))) * scale + shift);
#else
    std::uint8_t numbers[lanes];
    memcpy(numbers, &bytes, sizeof numbers);
    for (int i = 0; i < lanes; ++i) to[i] = float(numbers[i]) * scale + shift;
#endif
}

// Images of 16 samples → (pixel, lane), normalised. Four rounds of interleaving turn 16 × 16 bytes.
inline void gather(const Samples& samples, const Network& net, const std::int64_t* numbers, int count, float* input) {
    if (samples.values) return gather_values(samples, net, numbers, count, input);
    const std::uint8_t* image[lanes];
    for (int lane = 0; lane < lanes; ++lane)  // padding repeats the first sample: finite, and weighs nothing
        image[lane] = samples.pixels + numbers[lane < count ? lane : 0] * net.pixels;
    Places places(net, input);
    int p = 0;
    for (; p + lanes <= net.pixels; p += lanes) {
        Bytes from[lanes], to[lanes];
        for (int lane = 0; lane < lanes; ++lane) memcpy(&from[lane], image[lane] + p, lanes);
        for (int round = 0; round < 4; ++round) {
            for (int i = 0; i < lanes / 2; ++i) {
                to[2 * i] = FEELSTREAM_SHUFFLE(Bytes, from[i], from[i + lanes / 2], FEELSTREAM_LOW_16);
                to[2 * i + 1] = FEELSTREAM_SHUFFLE(Bytes, from[i], from[i + lanes / 2], FEELSTREAM_HIGH_16);
            }
            for (int i = 0; i < lanes; ++i) from[i] = to[i];
        }
        for (int i = 0; i < lanes; ++i) normalise(from[i], samples.scale, samples.shift, places.next());
    }
    for (; p < net.pixels; ++p) {
        float* to = places.next();
        for (int lane = 0; lane < lanes; ++lane) to[lane] = float(image[lane][p]) * samples.scale + samples.shift;
    }
}

// losses[lane] = log Σ exp(z) − z[label]; predicted[lane] is the first largest class.
// With `delta` given: softmax(z) − onehot(label), times `weight`, and exactly 0 in padding.
inline void cross_entropy(const float* logits, int classes, const std::int32_t* labels, int count, float weight,
                          float* losses, int* predicted, float* delta) {
    float largest[lanes], total[lanes] = {};
    for (int lane = 0; lane < lanes; ++lane) largest[lane] = logits[lane], predicted[lane] = 0;
    for (int c = 1; c < classes; ++c)
        for (int lane = 0; lane < lanes; ++lane)
            if (logits[c * lanes + lane] > largest[lane]) largest[lane] = logits[c * lanes + lane], predicted[lane] = c;
    for (int c = 0; c < classes; ++c)
        for (int lane = 0; lane < count; ++lane) {
            const float e = expf(logits[c * lanes + lane] - largest[lane]);
            total[lane] += e;
            if (delta) delta[c * lanes + lane] = e;
        }
    for (int lane = 0; lane < count; ++lane)
        losses[lane] = logf(total[lane]) - (logits[labels[lane] * lanes + lane] - largest[lane]);
    if (!delta) return;
    for (int c = 0; c < classes; ++c)
        for (int lane = 0; lane < lanes; ++lane)
            delta[c * lanes + lane] =
                lane < count ? (delta[c * lanes + lane] / total[lane] - float(c == labels[lane])) * weight : 0.0f;
}

}  // namespace
}  // namespace feelstream
