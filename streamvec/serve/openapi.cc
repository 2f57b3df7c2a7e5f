// The OpenAPI document, made of the table of calls: what is in it is routed, and what is routed is in it.
#include "streamvec/core/json.h"
#include "streamvec/serve/api.h"

namespace streamvec {
namespace {

// "integer?", "number[]?" and the like as JSON Schema.
Json schema_of_name(std::string type) {
  const bool nullable = type.ends_with('?');
  if (nullable) type.pop_back();
  Json schema = Json::object();
  if (type.ends_with("[]"))
    schema = {{"type", "array"}, {"items", schema_of_name(type.substr(0, type.size() - 2))}};
  else if (type != "any")
    schema["type"] = type;
  if (nullable) schema["nullable"] = true;
  return schema;
}

// Of an answer as the table has it: an object's fields are all there, an array's items are all alike.
Json schema_of(const Json& shape) {
  if (shape.is_string()) return schema_of_name(shape.get<std::string>());
  if (shape.is_array()) return {{"type", "array"}, {"items", schema_of(shape[0])}};
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
  for (const auto& [name, value] : shape.items()) {
    schema["properties"][name] = schema_of(value);
    schema["required"].push_back(name);
  }
  return schema;
}

Json schema_of_parameter(std::string_view type, bool in_body) {
  if (type == "word[]" && in_body)
    return parse_ordered_json(
        R"({"type":"array","items":{"oneOf":[{"type":"string"},{"type":"object","properties":{"word":{"type":"string"},)"
        R"("weight":{"type":"number"}},"required":["word"],"additionalProperties":false}]}})");
  if (type == "pair[]")
    return parse_ordered_json(
        R"({"type":"array","items":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":2}})");
  if (type == "word[]") return {{"type", "array"}, {"items", {{"type", "string"}}}};
  if (!type.ends_with("[]")) return {{"type", type}};
  return {{"type", "array"}, {"items", {{"type", type.substr(0, type.size() - 2)}}}};
}

Json address_parameters(const ApiCall& call) {
  Json list = Json::array();
  for (const ApiParameter& parameter : call.parameters) {
    if (parameter.body_only) continue;
    Json one = {{"name", parameter.name}, {"in", "query"}, {"required", parameter.required}};
    if (!parameter.help.empty()) one["description"] = parameter.help;
    if (parameter.type.ends_with("[]")) one["explode"] = true;
    one["schema"] = schema_of_parameter(parameter.type, false);
    list.push_back(std::move(one));
  }
  return list;
}

Json body_of(const ApiCall& call) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  for (const ApiParameter& parameter : call.parameters) {
    Json one = schema_of_parameter(parameter.type, true);
    if (!parameter.help.empty()) one["description"] = parameter.help;
    schema["properties"][std::string(parameter.name)] = std::move(one);
    if (parameter.required) schema["required"].push_back(parameter.name);
  }
  return {{"required", true}, {"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
}

Json answers_of(const ApiCall& call) {
  Json schema = {{"type", "string"}};
  if (!call.answer.empty()) schema = schema_of(parse_ordered_json(call.answer));
  const std::string type(call.content_type.substr(0, call.content_type.find(';')));
  Json answers = {{"200", {{"description", "the answer"}, {"content", {{type, {{"schema", std::move(schema)}}}}}}}};
  answers["default"] = {{"description", "what was wrong"},
                        {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
  return answers;
}

Json operation_of(const ApiCall& call, const std::string& method) {
  std::string id(call.path);
  for (char& c : id)
    if (c == '/' || c == '.') c = '_';
  Json operation = {{"operationId", (method == "POST" ? "post" : "get") + id}, {"summary", call.summary}};
  if (method == "POST")
    operation["requestBody"] = body_of(call);
  else
    operation["parameters"] = address_parameters(call);
  operation["responses"] = answers_of(call);
  if (call.role == Role::kNobody) operation["security"] = Json::array();
  return operation;
}

}  // namespace

Json openapi(const std::string& version) {
  Json document = {{"openapi", "3.0.3"},
                   {"info",
                    {{"title", "streamvec"},
                     {"description", "Word vectors that keep up with text: neighbours, analogies, change of meaning."},
                     {"version", version}}},
                   {"paths", Json::object()}};
  for (const ApiCall& call : api_calls())
    for (const std::string method : {"GET", "POST"})
      if (allows(call, method))
        document["paths"][std::string(call.path)][method == "GET" ? "get" : "post"] = operation_of(call, method);
  document["components"]["schemas"]["Error"] =
      schema_of(parse_ordered_json(R"({"error":{"code":"string","message":"string"}})"));
  document["components"]["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  document["security"] = parse_ordered_json(R"([{"token":[]},{}])");
  return document;
}

}  // namespace streamvec
