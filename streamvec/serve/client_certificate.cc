#include "streamvec/serve/client_certificate.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>
#include <string>

namespace streamvec {

Role role_of_certificate(const x509_st* certificate) {
  if (certificate == nullptr) return Role::kNobody;
  X509_NAME* subject = X509_get_subject_name(certificate);
  Role role = Role::kQuery;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_organizationalUnitName, at)) >= 0;) {
    unsigned char* text = nullptr;
    const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    const std::string unit(reinterpret_cast<char*>(text), size > 0 ? static_cast<size_t>(size) : 0);
    OPENSSL_free(text);
    // Of several units the least counts: nobody gains a role by one more.
    const Role named = unit == "query" ? Role::kQuery : unit == "metrics" ? Role::kMetrics : Role::kNobody;
    role = std::min(role, named);
  }
  return role;
}

Role role_of_pem(std::string_view pem) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bytes(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr),
                                                           X509_free);
  return role_of_certificate(certificate.get());
}

}  // namespace streamvec
