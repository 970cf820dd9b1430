package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strconv"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/udp"
	"github.com/plgd-dev/go-coap/v3/udp/client"
)

type asking struct {
	connection *client.Conn
	ctx        context.Context
}

// Checks a response; the body unless it is nil.
func check(what string, response *pool.Message, err error, code codes.Code, body []byte) []byte {
	if err != nil {
		log.Fatal(what, ": ", err)
	}
	got, _ := response.ReadBody()
	if response.Code() != code || (body != nil && !bytes.Equal(got, body)) {
		log.Fatal(what, ": ", response.Code(), " with ", len(got), " bytes")
	}
	return got
}

func (a asking) get(path string, code codes.Code, body []byte, options ...message.Option) []byte {
	response, err := a.connection.Get(a.ctx, path, options...)
	return check("GET "+path, response, err, code, body)
}

func (a asking) put(path string, payload []byte, code codes.Code, body []byte) {
	response, err := a.connection.Put(a.ctx, path, message.TextPlain, bytes.NewReader(payload))
	check("PUT "+path, response, err, code, body)
}

func (a asking) post(path string, payload []byte, body []byte) []byte {
	response, err := a.connection.Post(a.ctx, path, message.TextPlain, bytes.NewReader(payload))
	return check("POST "+path, response, err, codes.Changed, body)
}

func (a asking) delete(path string, code codes.Code) {
	response, err := a.connection.Delete(a.ctx, path)
	check("DELETE "+path, response, err, code, nil)
}

func (a asking) observe(path string, count int, right func(state []byte) bool) {
	states := make(chan []byte, 100)
	observation, err := a.connection.Observe(a.ctx, path, func(notification *pool.Message) {
		state, _ := notification.ReadBody()
		states <- state
	})
	if err != nil {
		log.Fatal("observe ", path, ": ", err)
	}
	for range count {
		select {
		case state := <-states:
			if !right(state) {
				log.Fatal("observe ", path, ": ", len(state), " bytes")
			}
		case <-a.ctx.Done():
			log.Fatal("observe ", path, ": no state")
		}
	}
	if err := observation.Cancel(a.ctx); err != nil {
		log.Fatal("cancel ", path, ": ", err)
	}
}

// Each POST is counted once, however often its datagrams come.
func (a asking) count(times int) {
	first := 0
	for n := range times {
		counted, err := strconv.Atoi(string(a.post("/count", []byte("x"), nil)))
		if n == 0 {
			first = counted
		}
		if err != nil || counted != first+n {
			log.Fatal("POST ", n, " was counted as ", counted)
		}
	}
}

func (a asking) all() {
	a.get("/test", codes.Content, test)
	if links := a.get("/.well-known/core", codes.Content, nil); !bytes.Contains(links, []byte("</time>")) {
		log.Fatal("links: ", string(links))
	}
	a.put("/echo", []byte("hi"), codes.Changed, []byte("hi"))
	a.post("/echo", []byte("hi"), []byte("hi"))
	a.delete("/echo", codes.Deleted)
	a.get("/separate", codes.Content, nil)
	a.get("/large", codes.Content, large)
	a.put("/echo", large, codes.Changed, large)
	a.get("/missing", codes.NotFound, nil)
	a.delete("/test", codes.MethodNotAllowed)
	a.put("/echo", digits(3<<20), codes.RequestEntityTooLarge, nil)
	a.get("/test", codes.BadOption, nil, message.Option{ID: 65001, Value: []byte("x")})
	a.get("/test", codes.Content, test, message.Option{ID: 16, Value: []byte{3}})
	short, cancel := context.WithTimeout(a.ctx, 500*time.Millisecond)
	defer cancel()
	silent, err := a.connection.NewGetRequest(short, "/test", message.Option{ID: message.NoResponse, Value: []byte{2}})
	if err != nil {
		log.Fatal(err)
	}
	silent.SetType(message.NonConfirmable)
	if response, err := a.connection.Do(silent); err == nil {
		log.Fatal("it wanted no response: ", response)
	}
	a.observe("/time", 3, func(state []byte) bool {
		_, err := strconv.Atoi(string(state))
		return err == nil
	})
	// A Confirmable notification of several blocks is acknowledged by go-coap 3.5 with an ACK that
	// carries its GET for the next one, which no ACK may: only the first state is sure to come.
	a.observe("/times", 1, func(state []byte) bool {
		return bytes.Equal(state, bytes.Repeat(state[:1], 3000))
	})
}

func (a asking) lossy() {
	a.count(12)
	for range 5 {
		a.get("/test", codes.Content, test)
	}
	// Blocks after the first one are not repeated by go-coap 3.5, so a lost one is never missed.
	a.put("/echo", large[:1000], codes.Changed, large[:1000])
	a.get("/separate", codes.Content, nil)
}

func ask(address, what string) {
	connection, err := udp.Dial(address, transmission, often)
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	a := asking{connection, ctx}
	switch what {
	case "all":
		a.all()
	case "lossy":
		a.lossy()
	case "count":
		a.count(10)
	default:
		log.Fatal("there is no ", what)
	}
	fmt.Println("all answered")
}
