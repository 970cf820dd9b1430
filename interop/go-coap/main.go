// The resources of `ebbtide serve` by go-coap, or a client that asks for them all:
// interop server|client PORT
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/mux"
	"github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/udp"
)

func large() []byte {
	body := make([]byte, 1<<20)
	for n := range body {
		body[n] = byte('0' + n%10)
	}
	return body
}

func respond(w mux.ResponseWriter, code codes.Code, body []byte) {
	if err := w.SetResponse(code, message.TextPlain, bytes.NewReader(body)); err != nil {
		log.Print(err)
	}
}

func observe(w mux.ResponseWriter, r *mux.Message) {
	register, err := r.Options().Observe()
	if r.Code() != codes.GET || err != nil || register != 0 {
		respond(w, codes.Content, []byte("0"))
		return
	}
	connection, token := w.Conn(), append([]byte{}, r.Token()...)
	go func() {
		for n := uint32(2); n < 40; n++ {
			m := connection.AcquireMessage(connection.Context())
			m.SetCode(codes.Content)
			m.SetToken(token)
			m.SetObserve(n)
			m.SetContentFormat(message.TextPlain)
			m.SetBody(bytes.NewReader([]byte(strconv.Itoa(int(n)))))
			if connection.WriteMessage(m) != nil {
				return
			}
			connection.ReleaseMessage(m)
			time.Sleep(500 * time.Millisecond)
		}
	}()
}

func serve(port string) {
	router := mux.NewRouter()
	handle := func(path string, code codes.Code, body func(*mux.Message) []byte) {
		if err := router.Handle(path, mux.HandlerFunc(func(w mux.ResponseWriter, r *mux.Message) {
			respond(w, code, body(r))
		})); err != nil {
			log.Fatal(err)
		}
	}
	digits := bytes.Repeat([]byte("0123456789"), 6)
	handle("/test", codes.Content, func(*mux.Message) []byte { return digits })
	body := large()
	handle("/large", codes.Content, func(*mux.Message) []byte { return body })
	handle("/separate", codes.Content, func(*mux.Message) []byte {
		time.Sleep(2 * time.Second)
		return []byte("that took two seconds")
	})
	handle("/echo", codes.Changed, func(r *mux.Message) []byte {
		if r.Body() == nil {
			return nil
		}
		all, _ := io.ReadAll(r.Body())
		return all
	})
	if err := router.Handle("/time", mux.HandlerFunc(observe)); err != nil {
		log.Fatal(err)
	}
	listener, err := net.NewListenUDP("udp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	log.Fatal(udp.NewServer(options.WithMux(router)).Serve(listener))
}

func ask(port string) {
	connection, err := udp.Dial("127.0.0.1:" + port)
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	check := func(what string, response *pool.Message, err error, code codes.Code, body []byte) {
		if err != nil {
			log.Fatal(what, ": ", err)
		}
		got, _ := response.ReadBody()
		if response.Code() != code || (body != nil && !bytes.Equal(got, body)) {
			log.Fatal(what, ": ", response.Code(), " with ", len(got), " bytes")
		}
	}
	response, err := connection.Get(ctx, "/test")
	check("GET", response, err, codes.Content, bytes.Repeat([]byte("0123456789"), 6))
	response, err = connection.Get(ctx, "/large")
	check("Block2", response, err, codes.Content, large())
	response, err = connection.Put(ctx, "/echo", message.TextPlain, bytes.NewReader([]byte("hi")))
	check("PUT", response, err, codes.Changed, []byte("hi"))
	response, err = connection.Post(ctx, "/echo", message.TextPlain, bytes.NewReader(large()))
	check("Block1", response, err, codes.Changed, nil)
	response, err = connection.Get(ctx, "/separate")
	check("separate", response, err, codes.Content, nil)
	response, err = connection.Get(ctx, "/missing")
	check("4.04", response, err, codes.NotFound, nil)
	response, err = connection.Delete(ctx, "/test")
	check("4.05", response, err, codes.MethodNotAllowed, nil)
	var seen sync.WaitGroup
	seen.Add(3)
	states := 0
	_, err = connection.Observe(ctx, "/time", func(*pool.Message) {
		if states++; states <= 3 {
			seen.Done()
		}
	})
	if err != nil {
		log.Fatal("observe: ", err)
	}
	seen.Wait()
	fmt.Println("all answered")
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "server" {
		serve(os.Args[2])
	} else if len(os.Args) == 3 {
		ask(os.Args[2])
	}
}
