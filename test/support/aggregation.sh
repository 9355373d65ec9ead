# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # work: lib.sh
# aggregation.sh: an API server that forwards requests to other API servers (its aggregation layer). After lib.sh, before
# scripts/kube/apiserver.
pki=$work/pki

# ca NAME; certificate NAME CA SUBJECT: keys and certificates in $pki
ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.crt" -subj "/CN=${1##*/}" -days 2 2>/dev/null; }
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/$1.key" -out "$pki/$1.csr" -subj "$3" 2>/dev/null &&
		openssl x509 -req -in "$pki/$1.csr" -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -days 2 -out "$pki/$1.crt" 2>/dev/null
}
# aggregation_prepare: creates the certificates, and sets the flags of the next `apiserver up`.
aggregation_prepare() {
	mkdir -p "$pki" && ca "$pki/front-proxy-ca" && certificate aggregator "$pki/front-proxy-ca" /CN=aggregator || return 1
	export APISERVER_FLAGS="--requestheader-client-ca-file=$pki/front-proxy-ca.crt --requestheader-allowed-names=aggregator
		--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
		--requestheader-extra-headers-prefix=X-Remote-Extra-
		--proxy-client-cert-file=$pki/aggregator.crt --proxy-client-key-file=$pki/aggregator.key"
}
