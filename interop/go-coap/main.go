// What ../README.md asks of a peer: interop server PORT [HOST], or client BASE [count|lossy]
package main

import (
	"log"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/pkg/runner/periodic"
)

func digits(length int) []byte {
	body := make([]byte, length)
	for n := range body {
		body[n] = byte('0' + n%10)
	}
	return body
}

var (
	test  = digits(60)
	large = digits(1 << 20)
)

// A loopback interface answers soon, and a relay that loses a tenth of all needs more patience.
var transmission = options.WithTransmission(1, 500*time.Millisecond, 8)

// Without it go-coap looks for expired timeouts every 4 s.
var often = options.WithPeriodicRunner(periodic.New(nil, 50*time.Millisecond))

func main() {
	argument := func(index int, otherwise string) string {
		if len(os.Args) > index {
			return os.Args[index]
		}
		return otherwise
	}
	if argument(1, "") == "server" {
		serve(net.JoinHostPort(argument(3, "127.0.0.1"), argument(2, "5683")))
		return
	}
	if argument(1, "") == "matrix-server" {
		matrixServe(net.JoinHostPort(argument(3, "127.0.0.1"), argument(2, "5683")), argument(4, "coap"))
		return
	}
	base, err := url.Parse(argument(2, ""))
	if err != nil {
		log.Fatal(err)
	}
	if argument(1, "") == "ask" {
		matrixAsk(base)
		return
	}
	ask(base.Host, argument(3, "all"))
}
