#!/bin/sh
# Makes secret.yaml with a self-signed certificate for *.localhost, to try HTTPS
# with. Needs openssl.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
	-subj "/CN=localhost" -addext "subjectAltName=DNS:*.localhost,DNS:localhost" \
	-keyout "$tmp/tls.key" -out "$tmp/tls.crt" 2>/dev/null
umask 077
cat > "$tmp/secret.yaml" <<YAML
apiVersion: v1
kind: Secret
metadata:
  name: sample-tls
type: kubernetes.io/tls
stringData:
  tls.crt: |
$(sed 's/^/    /' "$tmp/tls.crt")
  tls.key: |
$(sed 's/^/    /' "$tmp/tls.key")
YAML
# Into place as a whole, by a rename.
cp "$tmp/secret.yaml" .secret.yaml.new
mv .secret.yaml.new secret.yaml
echo "made $(pwd)/secret.yaml"
