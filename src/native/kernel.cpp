// The whole network on one block of samples, for one instruction set. Compiled once for each of them.
#include "kernel.hpp"

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "convolution.hpp"
#include "dense.hpp"
#include "filter.hpp"
#include "filter_backward.hpp"
#include "filter_forward.hpp"
#include "network.hpp"
#include "optimiser.hpp"
#include "pooling.hpp"
#include "samples.hpp"
#include "vector.hpp"
#include "winograd.hpp"
#include "winograd_gradient.hpp"
#include "winograd_input.hpp"
#include "winograd_square.hpp"

namespace feelstream {
namespace {

// Adds the time of its life to (stage, phase) of the profile, if there is one.
struct Clock {
    Workspace& space;
    int slot;
    double start;
    Clock(Workspace& space, int stage, Phase phase)
        : space(space), slot(stage * phases + phase), start(space.seconds ? space.now() : 0) {}
    ~Clock() {
        if (space.seconds) space.seconds[slot] += space.now() - start;
    }
};

const float* input_of(const Network& net, const Workspace& space, int stage) {
    return space.memory + (stage ? net.stages[stage - 1].output : net.input);
}

// f(form) with the form of filter.hpp that this stage takes, for tiles of so many outputs in a row. Rows of 7 are for
// evaluation alone: they made training slower.
template <int Outputs, bool Evaluation, class F>
void with_form(const Stage& s, F&& f) {
    if (s.filter() == Filter::square3)
        f(Form<Outputs, 3, true>{});
    else if constexpr (Evaluation) {
        if (s.filter() == Filter::row7)
            f(Form<Outputs, 7, false>{});
        else
            f(Form<Outputs, 5, false>{});
    } else if constexpr (Outputs == wide)
        f(Form<Outputs, 5, false>{});
}

// Training decides which of a window's values was the largest, and must decide like everybody else in close cases:
// forward it takes the direct way, or one that rounds no worse. Evaluation only needs the values.
template <bool Train>
void pack_forward_weights(const Stage& s, const float* weight, float* packed) {
    if (s.filters_forward(Train))
        with_form<Train ? narrow : wide, !Train>(s,
                                                 [&](auto form) { filter_weights<decltype(form)>(s, weight, packed); });
    else if (!Train && s.winograd_shared())
        square_pack(s, weight, packed);
    else if (!Train && s.winograd())
        winograd_pack(s, weight, packed);
    else
        pack_forward(s, weight, packed);
}

void pack_backward_weights(const Stage& s, const float* weight, float* packed) {
    if (s.filters_back())
        with_form<wide, false>(s, [&](auto form) { filter_weights<decltype(form)>(s, weight, packed); });
    else if (s.winograd_shared())
        winograd_pack_backward(s, weight, packed);
    else
        pack_backward(s, weight, packed);
}

template <bool Train>
void pack(const Network& net, const float* theta, Workspace& space) {
    for (int i = 0; i < net.count; ++i) {
        const Stage& s = net.stages[i];
        if (s.kind != Kind::convolution) continue;
        pack_forward_weights<Train>(s, theta + s.weight, space.memory + s.forward_weights);
        if (Train && s.has_earlier_weights)
            pack_backward_weights(s, theta + s.weight, space.memory + s.backward_weights);
    }
}

// All stages but the dense ones at the end, whose input is kept as that of `block`.
template <bool Train>
void forward(const Network& net, const float* theta, Workspace& space, int block) {
    for (int i = 0; i < net.tail; ++i) {
        const Clock clock(space, i, forward_phase);
        const Stage& s = net.stages[i];
        const float* in = input_of(net, space, i);
        float *output = space.memory + s.output, *route = space.memory + s.route;
        if (i == net.tail - 1) output += block * s.outputs() * lanes;
        switch (s.kind) {
            case Kind::convolution:
                if (s.filters_forward(Train))
                    with_form<Train ? narrow : wide, !Train>(s, [&](auto form) {
                        filter_convolve<decltype(form), Train>(s, in, space.memory + net.filter_inputs,
                                                               space.memory + s.forward_weights, theta + s.bias, output,
                                                               route);
                    });
                else if (!Train && s.winograd_shared())
                    square_convolve(s, in, space.memory + s.points, space.memory + s.forward_weights, theta + s.bias,
                                    output);
                else if (!Train && s.winograd())
                    winograd_convolve(s, in, space.memory + s.points, space.memory + s.forward_weights, theta + s.bias,
                                      output);
                else
                    convolve<Train>(s, in, space.memory + s.forward_weights, theta + s.bias, output, route);
                break;
            case Kind::dense: dense_forward(s, in, 1, theta + s.weight, theta + s.bias, output); break;
            case Kind::pool: pool_forward(s, in, output, route); break;
            case Kind::relu: relu_forward(in, s.outputs(), output); break;
            case Kind::pad:
                if (!s.placed) pad_forward(s, in, output);
                break;
        }
    }
}

// The dense stages at the end, of so many blocks together.
void dense_tail(const Network& net, const float* theta, Workspace& space, int blocks) {
    for (int i = net.tail; i < net.count; ++i) {
        const Clock clock(space, i, forward_phase);
        const Stage& s = net.stages[i];
        dense_forward(s, input_of(net, space, i), blocks, theta + s.weight, theta + s.bias, space.memory + s.output);
    }
}

// Adds the block's gradient to `gradient`; that of the logits is in delta[0].
void backward(const Network& net, const float* theta, Workspace& space, int samples, float* gradient) {
    float* delta = space.memory + net.delta[0];
    float* earlier = space.memory + net.delta[1];
    for (int i = net.count - 1; i >= 0; --i) {
        const Stage& s = net.stages[i];
        const float* in = input_of(net, space, i);
        if (s.relu && !s.pool) relu_backward(space.memory + s.output, s.outputs(), delta);
        if (s.kind == Kind::convolution) {
            float* spread = s.pool ? space.memory + net.expanded : delta;
            const float* route = space.memory + s.route;
            {
                const Clock clock(space, i, weight_phase);
                if (s.pool)
                    pooled_bias_gradient(s, delta, route, gradient + s.bias);
                else
                    bias_gradient(delta, s.out_channels, std::size_t(s.out_rows) * s.out_columns, gradient + s.bias);
                if (s.filters_back())
                    with_form<wide, false>(s, [&](auto form) {
                        filter_gradients<decltype(form)>(
                            s, in, delta, route, space.memory + s.backward_weights,
                            {space.memory + net.filter_inputs, space.memory + net.delta_points,
                             space.memory + net.transposed, space.memory + net.sums},
                            gradient + s.weight, s.has_earlier_weights ? earlier : nullptr);
                    });
                else if (s.winograd_shared())
                    winograd_weight_gradient(s, in, delta, route, space.memory + s.points,
                                             space.memory + net.delta_points, gradient + s.weight);
                else
                    weight_gradient(s, in, delta, route, spread, s.has_earlier_weights, space.memory + net.sums,
                                    gradient + s.weight);
            }
            if (s.has_earlier_weights && !s.filters_back()) {
                const Clock clock(space, i, input_phase);
                const float* packed = space.memory + s.backward_weights;
                if (s.winograd_shared())
                    winograd_input_gradient(s, space.memory + net.delta_points, packed, earlier);
                else
                    input_gradient(s, spread, packed, earlier);
            }
        } else if (s.kind == Kind::dense) {
            {
                const Clock clock(space, i, weight_phase);
                dense_weight_gradient(s, in, delta, samples, space.memory + net.transposed, gradient + s.weight);
                bias_gradient(delta, s.out_channels, 1, gradient + s.bias);
            }
            const Clock clock(space, i, input_phase);
            if (s.has_earlier_weights) dense_input_gradient(s, delta, theta + s.weight, earlier);
        } else if (s.has_earlier_weights) {
            if (s.kind == Kind::pool)
                pool_backward(s, delta, space.memory + s.route, earlier);
            else if (s.kind == Kind::pad)
                pad_backward(s, delta, earlier);
            else
                memcpy(earlier, delta, s.inputs() * lanes * sizeof(float));
        }
        if (!s.has_earlier_weights) return;
        float* swap = delta;
        delta = earlier;
        earlier = swap;
    }
}

void predict(const Network& net, const float* theta, Workspace& space, const Samples& samples,
             const std::int64_t* numbers, int count, float* losses, std::int32_t* classes) {
    const int blocks = (count + lanes - 1) / lanes;
    const auto size_of = [&](int block) { return count - block * lanes < lanes ? count - block * lanes : lanes; };
    for (int block = 0; block < blocks; ++block) {
        float* input = space.memory + net.input + (net.tail == 0 ? block * std::size_t(net.pixels) * lanes : 0);
        gather(samples, net, numbers + block * lanes, size_of(block), input);
        forward<false>(net, theta, space, block);
    }
    dense_tail(net, theta, space, blocks);
    const float* logits = space.memory + net.stages[net.count - 1].output;
    for (int block = 0; block < blocks; ++block, logits += std::size_t(net.classes) * lanes) {
        const int first = block * lanes, size = size_of(block);
        std::int32_t labels[lanes];
        for (int lane = 0; lane < size; ++lane) labels[lane] = samples.labels[numbers[first + lane]];
        int predicted[lanes];
        cross_entropy(logits, net.classes, labels, size, 0, losses + first, predicted, nullptr);
        for (int lane = 0; lane < size; ++lane) classes[first + lane] = predicted[lane];
    }
}

void gradient(const Network& net, const float* theta, Workspace& space, const Samples& samples,
              const std::int64_t* batch, int size, int first, int last, float* losses, float* result) {
    memset(result, 0, net.parameters * sizeof(float));
    for (; first < last; first += lanes) {
        const int count = last - first < lanes ? last - first : lanes;
        std::int32_t labels[lanes];
        for (int lane = 0; lane < count; ++lane) labels[lane] = samples.labels[batch[first + lane]];
        gather(samples, net, batch + first, count, space.memory + net.input);
        forward<true>(net, theta, space, 0);
        dense_tail(net, theta, space, 1);
        int predicted[lanes];
        const float* logits = space.memory + net.stages[net.count - 1].output;
        cross_entropy(logits, net.classes, labels, count, 1.0f / float(size), losses + first, predicted,
                      space.memory + net.delta[0]);
        backward(net, theta, space, count, result);
    }
}

double multiply_adds(std::int64_t rounds) {
    constexpr int chains = 12;  // more than latency × units, fewer than registers
    constexpr int unroll = 8;
    Vec value[chains];
    for (int i = 0; i < chains; ++i) value[i] = splat(float(i));
    Vec factor = splat(0.999f), term = splat(0.001f);
    __asm__ volatile("" : "+m"(factor), "+m"(term));  // unknown to the compiler, so nothing folds
    const Vec a = factor, b = term;
    for (std::int64_t r = 0; r < rounds; ++r)
        for (int u = 0; u < unroll; ++u)
            for (int i = 0; i < chains; ++i) value[i] = value[i] * a + b;
    Vec total = {};
    for (int i = 0; i < chains; ++i) total += value[i];
    volatile float keep = sum(total);
    (void)keep;
    return double(rounds) * unroll * chains * width;
}

}  // namespace

extern const Kernel FEELSTREAM_KERNEL;
const Kernel FEELSTREAM_KERNEL = {FEELSTREAM_NAME, pack<false>, pack<true>, predict,
                                  gradient,        add,         descend,    multiply_adds};

}  // namespace feelstream
