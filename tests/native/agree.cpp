// The engine without Python: what one machine or compiler computes, compared with another.
//
//     agree write FILE      train and evaluate some networks on the baseline instruction set, store the results
//     agree compare FILE    the same on every instruction set of this machine, with 1 and 3 threads; exit code 1 if the
//                           threads change a bit, or a result is further from the stored one than rounding explains
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine.hpp"
#include "network.hpp"

using feelstream::Engine;
using feelstream::Kind;
using feelstream::Layer;

namespace {

struct Case {
    const char* name;
    int channels, rows, columns;
    std::vector<Layer> layers;
    int batch;
};

Layer conv(int channels, int rows, int columns) { return {Kind::convolution, channels, rows, columns}; }
Layer pool(int rows, int columns) { return {Kind::pool, 0, rows, columns}; }
Layer pad(int rows, int columns) { return {Kind::pad, 0, rows, columns}; }
Layer dense(int units) { return {Kind::dense, units, 0, 0}; }
const Layer relu{Kind::relu, 0, 0, 0}, halve = pool(2, 2);

std::vector<Case> cases() {
    using Layers = std::vector<Layer>;
    const Layers paper{conv(10, 5, 5), halve, relu, conv(20, 5, 5), halve, relu, dense(50), relu, dense(10)};
    const Layers edges{conv(4, 1, 1), conv(7, 5, 5), halve, relu, dense(3)};
    const Layers series{conv(8, 1, 9), relu, pool(1, 2), pad(0, 4), conv(5, 1, 5), pool(1, 2), dense(6)};
    const Layers sevens{conv(5, 1, 7), pool(1, 2), relu, pad(0, 6), conv(9, 1, 7), dense(4)};
    const Layers colour{pad(2, 2), conv(8, 3, 3), relu, halve, conv(9, 3, 2), pool(2, 1), halve, dense(4)};
    const Layers squares{conv(9, 3, 3), relu, pad(2, 2), conv(18, 3, 3), halve, relu, conv(6, 3, 3), dense(5)};
    return {
        {"squares", 4, 13, 17, squares, 33}, {"paper-cnn", 1, 28, 28, paper, 32}, {"odd edges", 5, 13, 15, edges, 19},
        {"series", 6, 1, 40, series, 70},    {"colour", 3, 12, 12, colour, 10},   {"softmax", 1, 7, 5, {dense(11)}, 1},
        {"sevens", 6, 1, 41, sevens, 20},
    };
}

// The same numbers on every machine (Numerical Recipes' linear congruential generator).
struct Numbers {
    std::uint32_t state = 1;
    std::uint32_t next() { return (state = state * 1664525u + 1013904223u) >> 8; }
    float uniform() { return float(next()) / 16777216.0f; }
};

// Updates of three devices after three steps of plain SGD and after three with everything, momentum's state, gradients
// at θ; and the losses of all that, absent samples (NaN) left out, and of predictions.
struct Results {
    std::vector<float> updates, losses;
    bool operator==(const Results& other) const { return same(updates, other.updates) && same(losses, other.losses); }

private:
    static bool same(const std::vector<float>& a, const std::vector<float>& b) {
        return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    }
};

// A data set, weights and batches for a case.
struct Problem {
    static constexpr int samples = 50, devices = 3, steps = 3;
    const Engine engine;
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    std::vector<float> theta, velocity, correction;
    std::vector<std::int64_t> numbers;
    int batch;

    Problem(const Case& c, const std::string& isa)
        : engine(c.channels, c.rows, c.columns, c.layers, isa),
          pixels(std::size_t(samples) * engine.network().pixels),
          labels(samples),
          theta(engine.network().parameters),
          velocity(devices * theta.size()),
          correction(devices * theta.size()),
          numbers(std::size_t(devices) * steps * c.batch),
          batch(c.batch) {
        Numbers random;
        for (auto& pixel : pixels) pixel = std::uint8_t(random.next());
        for (auto& label : labels) label = std::int32_t(random.next() % engine.network().classes);
        for (auto& weight : theta) weight = 0.3f * (random.uniform() - 0.5f);
        for (auto& sample : numbers) sample = random.next() % samples;
        for (auto& value : velocity) value = 0.02f * (random.uniform() - 0.5f);
        for (auto& value : correction) value = 0.02f * (random.uniform() - 0.5f);
    }

    feelstream::Samples data() const { return {pixels.data(), nullptr, labels.data(), 1.0f / 80, -1.3f}; }
    feelstream::Batches batches() const { return {numbers.data(), devices, steps, batch}; }
    // The second device's batches get shorter from step to step; the third has one.
    void shorten() {
        for (int step = 0; step < steps; ++step)
            for (int i = 0; i < batch; ++i) {
                if (i >= batch - step * batch / 3) numbers[(steps + step) * batch + i] = -1;
                if (step > 0) numbers[(2 * steps + step) * batch + i] = -1;
            }
    }
};

void append(std::vector<float>& to, const std::vector<float>& numbers) {
    for (const float number : numbers)
        if (!std::isnan(number)) to.push_back(number);
}

Results compute(const Case& c, const std::string& isa, int threads) {
    Problem p(c, isa);
    Results result;
    std::vector<float> updates(p.velocity.size()), losses(p.numbers.size());
    const auto keep = [&] { append(result.updates, updates), append(result.losses, losses); };
    p.engine.train(p.data(), p.theta.data(), p.batches(), {{0.02f, 0.02f, 0.02f}}, {nullptr, nullptr}, threads,
                   updates.data(), losses.data(), nullptr);
    keep();
    p.shorten();
    const feelstream::LocalSgd everything{{0.02f, 0.01f, 0.015f}, 0.8f, 0.05f, 0.5f, 0.7f, true};
    p.engine.train(p.data(), p.theta.data(), p.batches(), everything, {p.velocity.data(), p.correction.data()}, threads,
                   updates.data(), losses.data(), nullptr);
    keep();
    append(result.updates, p.velocity);
    const feelstream::Batches once{p.numbers.data(), p.devices, 1, p.batch};
    losses.resize(p.devices * p.batch);
    p.engine.gradients(p.data(), p.theta.data(), once, threads, updates.data(), losses.data());
    keep();
    const std::vector<std::int64_t> chosen{7, 0, 7, 49, 3, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};
    std::vector<std::int32_t> classes(chosen.size());
    losses.resize(chosen.size());
    p.engine.predict(p.data(), chosen.data(), chosen.size(), p.theta.data(), threads, losses.data(), classes.data(),
                     nullptr);
    append(result.losses, losses);
    const auto evaluation = p.engine.evaluate(p.data(), p.samples, p.theta.data(), threads, nullptr);
    result.losses.push_back(float(evaluation.loss_sum / p.samples));
    return result;
}

// The largest difference, as a share of the stored numbers' norm.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::fmax(largest, std::isfinite(a[i]) ? std::fabs(double(a[i]) - b[i]) : INFINITY);
        norm += double(b[i]) * b[i];
    }
    return largest / std::sqrt(norm);
}

bool write(std::FILE* file, const std::vector<float>& numbers) {
    return std::fwrite(numbers.data(), sizeof(float), numbers.size(), file) == numbers.size();
}

bool read(std::FILE* file, std::vector<float>& numbers) {
    return std::fread(numbers.data(), sizeof(float), numbers.size(), file) == numbers.size();
}

}  // namespace

int main(int argc, char** argv) {
    const std::string word = argc == 3 ? argv[1] : "";
    if (word != "write" && word != "compare") return std::fputs("usage: agree write|compare FILE\n", stderr), 2;
    std::FILE* file = std::fopen(argv[2], word == "write" ? "wb" : "rb");
    if (!file) return std::perror(argv[2]), 2;
    bool fine = true;
    for (const Case& c : cases()) {
        Results stored = compute(c, "baseline", 1);
        if (word == "write") {
            fine &= write(file, stored.updates) && write(file, stored.losses);
            continue;
        }
        if (!read(file, stored.updates) || !read(file, stored.losses))
            return std::fputs("the file is short\n", stderr), 2;
        for (const std::string& isa : feelstream::available_kernels()) {
            const Results one = compute(c, isa, 1), three = compute(c, isa, 3);
            const double updates = distance(one.updates, stored.updates), losses = distance(one.losses, stored.losses);
            const bool good = one == three && updates < 1e-5 && losses < 1e-5;
            std::printf("%-10s %-9s updates differ by %.1e of their norm, losses by %.1e%s%s\n", c.name, isa.c_str(),
                        updates, losses, one == three ? "" : ", and threads change bits", good ? "" : "   WRONG");
            fine &= good;
        }
    }
    fine &= std::fclose(file) == 0;
    return fine ? 0 : 1;
}
