// A JSON value with its path in the manifest, and checks that report the path in their errors.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/limits.h"

namespace opwright::host {

struct FormLimits {
    size_t depth = 0;
    size_t keys = std::numeric_limits<size_t>::max();  // in one object
};

// Callbacks for text that is valid JSON but has the wrong form; each throws.
struct FormFaults {
    std::function<void(const std::string& key)> key_twice;  // in one object: the parser would silently keep the second
    std::function<void()> too_deep;
    std::function<void()> too_many_keys = [] {};
};

// Text that is not JSON passes: the parser reports what is wrong with it.
void check_form(std::string_view text, const FormLimits& limits, const FormFaults& refuse);

// Parses `text`. Rejects duplicate keys, deep nesting, and text that is not JSON. Throws Error with `manifest_invalid`.
nlohmann::json parse_json(std::string_view text);

class Value {
  public:
    Value(const nlohmann::json& json, std::string place) : json_(json), place_(std::move(place)) {}

    // Checks that this value is an object with exactly these keys.
    void has_keys(std::initializer_list<const char*> keys) const;
    Value at(const char* key) const;

    bool is_null() const;
    bool boolean() const;
    int64_t integer(int64_t least) const;
    // A finite, non-negative number.
    double number() const;
    double any_number() const;
    // Text of 1 to `longest` bytes, without control characters.
    std::string text(size_t longest = limits::text_bytes) const;
    // One of `known`.
    std::string one_of(std::initializer_list<const char*> known) const;
    std::vector<Value> list(size_t longest = limits::list_length) const;
    // The keys and their values.
    std::vector<std::pair<std::string, Value>> entries() const;
    bool is_object() const;

    // Throws Error with `manifest_invalid`. `expected` describes what was expected here.
    [[noreturn]] void refuse(const std::string& expected) const;
    const std::string& place() const { return place_; }

  private:
    const nlohmann::json& json_;
    std::string place_;
};

}  // namespace opwright::host
