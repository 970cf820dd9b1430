package main

// The adapter of go-coap for the interoperability matrix; ../README.md describes it.

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"math/bits"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pion/dtls/v3"
	coapdtls "github.com/plgd-dev/go-coap/v3/dtls"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/mux"
	coapnet "github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/net/blockwise"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/tcp"
	"github.com/plgd-dev/go-coap/v3/udp"
)

const (
	unsupported = 127
	fetch       = codes.Code(5)
	patch       = codes.Code(6)
	ipatch      = codes.Code(7)
	echoOption  = message.OptionID(252)
)

// Its own certificate, and the authorities of the others.
func certificates(folder string) (tls.Certificate, *x509.CertPool) {
	own, err := tls.LoadX509KeyPair(folder+"/peer.pem", folder+"/peer.pem")
	if err != nil {
		log.Fatal(err)
	}
	authorities, err := os.ReadFile(folder + "/authority.pem")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	return own, pool
}

func tlsConfig(host string) *tls.Config {
	own, pool := certificates(os.Getenv("INTEROP_CERTIFICATES"))
	return &tls.Config{
		Certificates: []tls.Certificate{own},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ServerName:   host,
		NextProtos:   []string{"coap"},
	}
}

// The pre-shared key or, with a folder of them, certificates.
func security(host string) *dtls.Config {
	config := &dtls.Config{
		PSK:             func([]byte) ([]byte, error) { return []byte("sesame-of-interop"), nil },
		PSKIdentityHint: []byte("matrix"),
		CipherSuites:    []dtls.CipherSuiteID{dtls.TLS_PSK_WITH_AES_128_CCM_8},
	}
	if folder := os.Getenv("INTEROP_CERTIFICATES"); folder != "" {
		own, pool := certificates(folder)
		config = &dtls.Config{
			Certificates: []tls.Certificate{own},
			RootCAs:      pool,
			ClientCAs:    pool,
			ClientAuth:   dtls.RequireAndVerifyClientCert,
			ServerName:   host,
			CipherSuites: []dtls.CipherSuiteID{
				dtls.TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8, dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
			},
		}
	}
	// The length of its own connection IDs; without it, none are negotiated.
	if length, err := strconv.Atoi(os.Getenv("INTEROP_CID")); err == nil && length > 0 {
		config.ConnectionIDGenerator = dtls.RandomCIDGenerator(length)
	} else if err == nil {
		config.ConnectionIDGenerator = dtls.OnlySendCIDGenerator()
	}
	return config
}

func matrixRouter() *mux.Router {
	router := mux.NewRouter()
	handle := func(path string, handler mux.HandlerFunc) {
		if err := router.Handle(path, handler); err != nil {
			log.Fatal(err)
		}
	}
	respond := func(w mux.ResponseWriter, code codes.Code, payload []byte) {
		if err := w.SetResponse(code, message.TextPlain, bytes.NewReader(payload)); err != nil {
			log.Print(err)
		}
	}
	of := func(method, code codes.Code, payload func(r *mux.Message) []byte) mux.HandlerFunc {
		return func(w mux.ResponseWriter, r *mux.Message) {
			if r.Code() != method {
				respond(w, codes.MethodNotAllowed, nil)
				return
			}
			respond(w, code, payload(r))
		}
	}
	constant := func(payload []byte) func(*mux.Message) []byte {
		return func(*mux.Message) []byte { return payload }
	}
	for path, payload := range map[string][]byte{
		"/test": test, "/large": large, "/medium": large[:10_000], "/a b": []byte("spaced"),
	} {
		handle(path, of(codes.GET, codes.Content, constant(payload)))
	}
	handle("/query", of(codes.GET, codes.Content, func(r *mux.Message) []byte {
		queries, _ := r.Options().Queries()
		return []byte(strings.Join(queries, "&"))
	}))
	handle("/length", of(codes.PUT, codes.Changed, func(r *mux.Message) []byte {
		return []byte(strconv.Itoa(len(body(r))))
	}))
	handle("/count", of(codes.POST, codes.Changed, func(*mux.Message) []byte {
		return []byte(strconv.FormatInt(counted.Add(1), 10))
	}))
	handle("/echo", func(w mux.ResponseWriter, r *mux.Message) {
		switch r.Code() {
		case codes.DELETE:
			respond(w, codes.Deleted, nil)
		case fetch:
			respond(w, codes.Content, body(r))
		case codes.PUT, codes.POST, patch, ipatch:
			respond(w, codes.Changed, body(r))
		default:
			respond(w, codes.MethodNotAllowed, nil)
		}
	})
	tag := []byte{0x2a}
	hasTag := func(r *mux.Message, id message.OptionID) bool {
		value, err := r.Options().GetBytes(id)
		return err == nil && bytes.Equal(value, tag)
	}
	handle("/tagged", func(w mux.ResponseWriter, r *mux.Message) {
		accepted, err := r.Options().Accept()
		switch {
		case r.Code() == codes.PUT && (r.Options().HasOption(message.IfNoneMatch) ||
			r.Options().HasOption(message.IfMatch) && !hasTag(r, message.IfMatch)):
			respond(w, codes.PreconditionFailed, nil)
		case r.Code() == codes.PUT:
			respond(w, codes.Changed, nil)
		case err == nil && accepted != message.TextPlain:
			respond(w, codes.NotAcceptable, nil)
		case hasTag(r, message.ETag):
			_ = w.SetResponse(codes.Valid, message.TextPlain, nil, message.Option{ID: message.ETag, Value: tag})
		default:
			_ = w.SetResponse(codes.Content, message.TextPlain, strings.NewReader("tagged"),
				message.Option{ID: message.ETag, Value: tag})
		}
	})
	handle("/fresh", func(w mux.ResponseWriter, r *mux.Message) {
		if r.Options().HasOption(echoOption) {
			respond(w, codes.Content, []byte("fresh"))
			return
		}
		_ = w.SetResponse(codes.Unauthorized, message.TextPlain, nil,
			message.Option{ID: echoOption, Value: []byte("echo-me!")})
	})
	handle("/separate", separate)
	handle("/time", observed(250*time.Millisecond, func(n uint32) []byte {
		return []byte(strconv.Itoa(int(n)))
	}))
	handle("/times", observed(500*time.Millisecond, func(n uint32) []byte {
		return bytes.Repeat([]byte{byte('0' + n%10)}, 3000)
	}))
	handle("/.well-known/core", func(w mux.ResponseWriter, r *mux.Message) {
		links := "</test>,</large>,</medium>,</echo>,</length>,</count>,</time>;obs,</times>;obs"
		_ = w.SetResponse(codes.Content, message.AppLinkFormat, strings.NewReader(links))
	})
	return router
}

func matrixServe(address, scheme string) {
	router := matrixRouter()
	switch scheme {
	case "coap":
		listener, err := coapnet.NewListenUDP("udp", address)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("ready")
		log.Fatal(udp.NewServer(options.WithMux(router), transmission, often).Serve(listener))
	case "coap+tcp":
		listener, err := coapnet.NewTCPListener("tcp", address)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("ready")
		log.Fatal(tcp.NewServer(options.WithMux(router)).Serve(listener))
	case "coaps+tcp":
		listener, err := coapnet.NewTLSListener("tcp", address, tlsConfig(""))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("ready")
		log.Fatal(tcp.NewServer(options.WithMux(router)).Serve(listener))
	case "coaps":
		listener, err := coapnet.NewDTLSListener("udp", address, security(""))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("ready")
		log.Fatal(coapdtls.NewServer(options.WithMux(router), transmission, often).Serve(listener))
	default:
		os.Exit(unsupported)
	}
}

func host(address string) string {
	name, _, _ := net.SplitHostPort(address)
	return name
}

func dial(scheme, address string, szx blockwise.SZX) (mux.Conn, error) {
	blocks := options.WithBlockwise(true, szx, 8*time.Second)
	switch scheme {
	case "coap":
		return udp.Dial(address, transmission, often, blocks)
	case "coap+tcp":
		return tcp.Dial(address)
	case "coaps+tcp":
		return tcp.Dial(address, options.WithTLS(tlsConfig(host(address))))
	case "coaps":
		return coapdtls.Dial(address, security(host(address)), transmission, often, blocks)
	}
	os.Exit(unsupported)
	return nil, nil
}

func hexadecimal(value []byte) string {
	if len(value) == 0 {
		return "-"
	}
	return hex.EncodeToString(value)
}

func shown(response *pool.Message) string {
	parts := []string{}
	for _, option := range response.Options() {
		parts = append(parts, fmt.Sprintf("%d:%x", option.ID, option.Value))
	}
	named := "-"
	if len(parts) > 0 {
		named = strings.Join(parts, ",")
	}
	payload, _ := response.ReadBody()
	return fmt.Sprintf("%d.%02d %s %s", response.Code()>>5, response.Code()&31, named, hexadecimal(payload))
}

var methods = map[string]codes.Code{
	"GET": codes.GET, "POST": codes.POST, "PUT": codes.PUT, "DELETE": codes.DELETE,
	"FETCH": fetch, "PATCH": patch, "IPATCH": ipatch,
}

var session mux.Conn

func matrixOne(scheme, address string, words []string) error {
	szx, wait, observe := blockwise.SZX1024, 8*time.Second, 0
	set := map[string]string{}
	var added message.Options
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		set[key] = value
		switch key {
		case "block":
			size, _ := strconv.Atoi(value)
			szx = blockwise.SZX(bits.TrailingZeros(uint(size)) - 4)
		case "wait":
			seconds, _ := strconv.ParseFloat(value, 64)
			wait = time.Duration(seconds * float64(time.Second))
		case "observe":
			observe, _ = strconv.Atoi(value)
		case "opt":
			number, content, _ := strings.Cut(value, ":")
			id, _ := strconv.Atoi(number)
			decoded, _ := hex.DecodeString(content)
			added = append(added, message.Option{ID: message.OptionID(id), Value: decoded})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	connection := session
	if connection == nil || connection.Context().Err() != nil {
		var err error
		if connection, err = dial(scheme, address, szx); err != nil {
			return err
		}
	}
	// Over DTLS the next request uses the session, whose address may have changed.
	if scheme == "coaps" {
		session = connection
	} else {
		defer connection.Close()
	}
	var err error
	if words[0] == "PING" {
		if err := connection.Ping(ctx); err != nil {
			return err
		}
		fmt.Println("rst - -")
		return nil
	}
	path, query, _ := strings.Cut(words[1], "?")
	if path, err = url.PathUnescape(path); err != nil {
		return err
	}
	if observe > 0 {
		states := make(chan string, 100)
		observation, err := connection.Observe(ctx, path, func(notification *pool.Message) {
			states <- shown(notification)
		})
		if err != nil {
			return err
		}
		for range observe {
			select {
			case state := <-states:
				fmt.Println(state)
			case <-ctx.Done():
				return errors.New("no answer")
			}
		}
		err = observation.Cancel(ctx)
		time.Sleep(200 * time.Millisecond)
		return err
	}
	request := connection.AcquireMessage(ctx)
	defer connection.ReleaseMessage(request)
	token, err := message.GetToken()
	if err != nil {
		return err
	}
	request.SetToken(token)
	request.SetCode(methods[words[0]])
	if err := request.SetPath(path); err != nil {
		return err
	}
	for _, part := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' }) {
		request.AddQuery(part)
	}
	for _, option := range added {
		request.AddOptionBytes(option.ID, option.Value)
	}
	if _, is := set["non"]; is {
		request.SetType(message.NonConfirmable)
	}
	var payload io.ReadSeeker
	if value, is := set["payload"]; is {
		decoded, _ := hex.DecodeString(value)
		payload = bytes.NewReader(decoded)
	} else if value, is := set["digits"]; is {
		length, _ := strconv.Atoi(value)
		payload = bytes.NewReader(digits(length))
	}
	if payload != nil {
		request.SetContentFormat(message.TextPlain)
		request.SetBody(payload)
	}
	response, err := connection.Do(request)
	if err != nil {
		return err
	}
	fmt.Println(shown(response))
	return nil
}

func matrixAsk(uri *url.URL) {
	if !slices.Contains([]string{"coap", "coap+tcp", "coaps", "coaps+tcp"}, uri.Scheme) {
		os.Exit(unsupported)
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := matrixOne(uri.Scheme, uri.Host, strings.Fields(lines.Text())); err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		}
		fmt.Println(".")
	}
}
