package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/mux"
	"github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/udp"
)

type answer func(r *mux.Message) (codes.Code, []byte)

func body(r *mux.Message) []byte {
	if r.Body() == nil {
		return nil
	}
	all, _ := io.ReadAll(r.Body())
	return all
}

func content(payload []byte) answer {
	return func(r *mux.Message) (codes.Code, []byte) {
		if r.Code() != codes.GET {
			return codes.MethodNotAllowed, nil
		}
		return codes.Content, payload
	}
}

func echo(r *mux.Message) (codes.Code, []byte) {
	if r.Code() == codes.DELETE {
		return codes.Deleted, nil
	}
	return codes.Changed, body(r)
}

var counted atomic.Int64

func count(*mux.Message) (codes.Code, []byte) {
	return codes.Changed, []byte(strconv.FormatInt(counted.Add(1), 10))
}

// Sends a message of its own to whom has sent a request.
func send(w mux.ResponseWriter, token message.Token, payload []byte, options ...message.Option) error {
	m := w.Conn().AcquireMessage(w.Conn().Context())
	defer w.Conn().ReleaseMessage(m)
	m.SetCode(codes.Content)
	m.SetToken(token)
	for _, option := range options {
		m.SetOptionBytes(option.ID, option.Value)
	}
	m.SetContentFormat(message.TextPlain)
	m.SetBody(bytes.NewReader(payload))
	return w.Conn().WriteMessage(m)
}

// The handler gives no response, so the request is acknowledged.
func separate(w mux.ResponseWriter, r *mux.Message) {
	token := append([]byte{}, r.Token()...)
	go func() {
		time.Sleep(500 * time.Millisecond)
		if err := send(w, token, []byte("that took a while")); err != nil {
			log.Print(err)
		}
	}()
}

// A state that changes, with the number of the change for its ETag.
func observed(every time.Duration, state func(n uint32) []byte) mux.HandlerFunc {
	start := time.Now()
	now := func() uint32 { return uint32(time.Since(start)/every) + 2 }
	etag := func(n uint32) message.Option {
		return message.Option{ID: message.ETag, Value: binary.BigEndian.AppendUint32(nil, n)}
	}
	return func(w mux.ResponseWriter, r *mux.Message) {
		register, err := r.Options().Observe()
		if r.Code() != codes.GET || err != nil || register != 0 {
			n := now()
			_ = w.SetResponse(codes.Content, message.TextPlain, bytes.NewReader(state(n)), etag(n))
			return
		}
		token := append([]byte{}, r.Token()...)
		go func() {
			for range 40 {
				n := now()
				sequence := message.Option{ID: message.Observe, Value: []byte{byte(n >> 16), byte(n >> 8), byte(n)}}
				if send(w, token, state(n), etag(n), sequence) != nil {
					return
				}
				time.Sleep(every)
			}
		}()
	}
}

func serve(address string) {
	router := mux.NewRouter()
	handle := func(path string, handler mux.HandlerFunc) {
		if err := router.Handle(path, handler); err != nil {
			log.Fatal(err)
		}
	}
	for path, answer := range map[string]answer{
		"/test": content(test), "/large": content(large), "/echo": echo, "/count": count,
	} {
		handle(path, func(w mux.ResponseWriter, r *mux.Message) {
			code, payload := answer(r)
			if err := w.SetResponse(code, message.TextPlain, bytes.NewReader(payload)); err != nil {
				log.Print(err)
			}
		})
	}
	handle("/separate", separate)
	handle("/time", observed(200*time.Millisecond, func(n uint32) []byte {
		return []byte(strconv.Itoa(int(n)))
	}))
	handle("/times", observed(500*time.Millisecond, func(n uint32) []byte {
		return bytes.Repeat([]byte{byte('0' + n%10)}, 3000)
	}))
	handle("/.well-known/core", func(w mux.ResponseWriter, r *mux.Message) {
		// go-coap has none of its own.
		links := "</test>,</large>,</separate>,</echo>,</count>,</time>;obs,</times>;obs"
		_ = w.SetResponse(codes.Content, message.AppLinkFormat, strings.NewReader(links))
	})
	listener, err := net.NewListenUDP("udp", address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	log.Fatal(udp.NewServer(options.WithMux(router), transmission, often).Serve(listener))
}
