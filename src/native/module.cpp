// The Python face of the engine. Callers check what they pass (learning/native.py has the sentences);
// what is checked here again is only what would otherwise read or write outside an array.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "network.hpp"

namespace nb = nanobind;
using feelstream::Engine;
using feelstream::Kind;
using feelstream::Layer;
using feelstream::LocalSgd;

namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Images = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // (sample, pixel), uint8 or float
template <int N>
using Numbers = Array<const std::int64_t, N>;  // of samples
using Labels = Array<const std::int32_t, 1>;
using Theta = Array<const float, 1>;
using Profile = std::vector<double>;

void require(bool holds, const char* sentence) {
    if (!holds) throw std::invalid_argument(sentence);
}

feelstream::Samples check(const Engine& engine, const Images& images, const Labels& labels, const Theta& theta,
                          float scale, float shift) {
    const auto& net = engine.network();
    require(images.shape(0) == labels.shape(0), "as many labels as images are needed");
    require(images.shape(1) == std::size_t(net.pixels), "the images do not have the model's shape");
    require(theta.shape(0) == std::size_t(net.parameters), "theta does not have the model's length");
    for (std::size_t i = 0; i < labels.shape(0); ++i)
        require(labels(i) >= 0 && labels(i) < net.classes, "a label is outside the model's classes");
    const bool bytes = images.dtype() == nb::dtype<std::uint8_t>();
    require(bytes || images.dtype() == nb::dtype<float>(), "the images must be uint8 or float32");
    return {bytes ? static_cast<const std::uint8_t*>(images.data()) : nullptr,
            bytes ? nullptr : static_cast<const float*>(images.data()), labels.data(), scale, shift};
}

// Every number names a sample, or is −1 behind the last of its step.
void check_batches(const Numbers<3>& batches, std::size_t samples) {
    const std::size_t size = batches.shape(2);
    require(size > 0 && size <= std::size_t(std::numeric_limits<int>::max()), "the batch size is out of range");
    for (std::size_t start = 0; start < batches.size(); start += size) {
        const std::int64_t* numbers = batches.data() + start;
        for (std::size_t i = 0; i < size; ++i) {
            require(numbers[i] >= -1 && numbers[i] < std::int64_t(samples), "a sample number is outside the data set");
            require(numbers[i] < 0 || i == 0 || numbers[i - 1] >= 0, "an absent sample is not the last of its step");
        }
    }
}

feelstream::Batches batches_of(const Numbers<3>& batches) {
    return {batches.data(), std::int64_t(batches.shape(0)), std::int64_t(batches.shape(1)),
            std::int64_t(batches.shape(2))};
}

void check_threads(int threads) { require(threads >= 1, "at least one thread is needed"); }

template <class A, class... Sizes>
bool has_shape(const A& array, Sizes... sizes) {
    std::size_t axis = 0;
    return ((array.shape(axis++) == std::size_t(sizes)) && ...);
}

Profile train(const Engine& engine, const Images& images, const Labels& labels, float scale, float shift,
              const Theta& theta, const Numbers<3>& batches, const LocalSgd& sgd,
              const std::optional<Array<float, 2>>& velocity, const std::optional<Array<const float, 2>>& correction,
              int threads, const Array<float, 2>& updates, const Array<float, 3>& losses, bool profile) {
    check_threads(threads);
    const auto samples = check(engine, images, labels, theta, scale, shift);
    check_batches(batches, images.shape(0));
    const std::size_t devices = batches.shape(0), steps = batches.shape(1), parameters = theta.shape(0);
    require(steps > 0 && sgd.rates.size() == steps, "as many learning rates as steps are needed");
    require(has_shape(updates, devices, parameters), "updates has the wrong shape");
    require(has_shape(losses, devices, steps, batches.shape(2)), "losses has the wrong shape");
    require(!velocity || has_shape(*velocity, devices, parameters), "momentum has the wrong shape");
    require(!correction || has_shape(*correction, devices, parameters), "correction has the wrong shape");
    Profile seconds(profile ? engine.profile_size() : 0);
    const feelstream::DeviceState state{velocity ? velocity->data() : nullptr,
                                        correction ? correction->data() : nullptr};
    const nb::gil_scoped_release release;
    engine.train(samples, theta.data(), batches_of(batches), sgd, state, threads, updates.data(), losses.data(),
                 profile ? seconds.data() : nullptr);
    return seconds;
}

void gradients(const Engine& engine, const Images& images, const Labels& labels, float scale, float shift,
               const Theta& theta, const Numbers<3>& batches, int threads, const Array<float, 2>& result,
               const Array<float, 3>& losses) {
    check_threads(threads);
    const auto samples = check(engine, images, labels, theta, scale, shift);
    check_batches(batches, images.shape(0));
    require(batches.shape(1) == 1, "a gradient is of one step");
    require(has_shape(result, batches.shape(0), theta.shape(0)), "gradients has the wrong shape");
    require(has_shape(losses, batches.shape(0), 1, batches.shape(2)), "losses has the wrong shape");
    const nb::gil_scoped_release release;
    engine.gradients(samples, theta.data(), batches_of(batches), threads, result.data(), losses.data());
}

void predict(const Engine& engine, const Images& images, const Labels& labels, float scale, float shift,
             const Theta& theta, const Numbers<1>& numbers, int threads, const Array<float, 1>& losses,
             const Array<std::int32_t, 1>& classes) {
    check_threads(threads);
    const auto samples = check(engine, images, labels, theta, scale, shift);
    for (std::size_t i = 0; i < numbers.shape(0); ++i)
        require(numbers(i) >= 0 && std::size_t(numbers(i)) < images.shape(0),
                "a sample number is outside the data set");
    require(has_shape(losses, numbers.shape(0)), "losses has the wrong shape");
    require(has_shape(classes, numbers.shape(0)), "classes has the wrong shape");
    const nb::gil_scoped_release release;
    engine.predict(samples, numbers.data(), std::int64_t(numbers.shape(0)), theta.data(), threads, losses.data(),
                   classes.data(), nullptr);
}

std::tuple<double, std::int64_t, Profile> evaluate(const Engine& engine, const Images& images, const Labels& labels,
                                                   float scale, float shift, const Theta& theta, int threads,
                                                   bool profile) {
    check_threads(threads);
    const auto samples = check(engine, images, labels, theta, scale, shift);
    Profile seconds(profile ? engine.profile_size() : 0);
    const nb::gil_scoped_release release;
    const auto result = engine.evaluate(samples, std::int64_t(images.shape(0)), theta.data(), threads,
                                        profile ? seconds.data() : nullptr);
    return {result.loss_sum, result.right, std::move(seconds)};
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "feelstream's learning kernel";
    m.def("available", &feelstream::available_kernels, "Instruction sets this machine can run, slowest first.");
    nb::enum_<Kind>(m, "Kind", "What a layer does.")
        .value("CONVOLUTION", Kind::convolution)
        .value("DENSE", Kind::dense)
        .value("POOL", Kind::pool)
        .value("RELU", Kind::relu)
        .value("PAD", Kind::pad);
    nb::class_<Layer>(m, "Layer", "A layer as the engine takes it; network.hpp says what the numbers mean.")
        .def(nb::init<Kind, int, int, int>(), nb::arg("kind"), nb::arg("size") = 0, nb::arg("rows") = 0,
             nb::arg("columns") = 0);
    nb::class_<LocalSgd>(m, "LocalSgd", "What devices do with their gradients; learning/contract.py has the formulas.")
        .def(nb::init<std::vector<float>, float, float, float, float, bool>(), nb::arg("rates"),
             nb::arg("momentum") = 0.0f, nb::arg("weight_decay") = 0.0f, nb::arg("prox") = 0.0f, nb::arg("clip") = 0.0f,
             nb::arg("nesterov") = false);
    nb::class_<Engine>(m, "Engine")
        .def(nb::init<int, int, int, const std::vector<Layer>&, const std::string&>(), nb::arg("channels"),
             nb::arg("rows"), nb::arg("columns"), nb::arg("layers"), nb::arg("isa"))
        .def_prop_ro("parameters", [](const Engine& e) { return e.network().parameters; })
        .def_prop_ro("classes", [](const Engine& e) { return e.network().classes; })
        .def_prop_ro("stages", &Engine::stage_names)
        .def("train", &train)
        .def("gradients", &gradients)
        .def("predict", &predict)
        .def("evaluate", &evaluate)
        .def("peak", &Engine::peak, nb::call_guard<nb::gil_scoped_release>(), nb::arg("seconds"),
             "Multiply-adds a second that one core can do.");
}
