// What a client's certificate says of its holder.
#pragma once

#include <string_view>

#include "streamvec/serve/http_message.h"

struct x509_st;

namespace streamvec {

// The role that the organisational units of the subject name: "query", or none at all, is kQuery, "metrics" kMetrics,
// any other kNobody. The certificate itself has been checked before. nullptr: kNobody.
Role role_of_certificate(const x509_st* certificate);
// The same for a certificate as PEM text.
Role role_of_pem(std::string_view pem);

}  // namespace streamvec
