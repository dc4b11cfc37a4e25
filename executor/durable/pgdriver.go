package durable

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// pgDriver is River's driver for PostgreSQL with other texts of some errors. River takes an error that ends in "conn closed"
// for the end of the program: a queue whose connection is lost while it starts would not be worked, and nobody would know.
type pgDriver struct{ riverdriver.Driver[pgx.Tx] }

func (d pgDriver) GetExecutor() riverdriver.Executor { return pgExecutor{d.Driver.GetExecutor()} }

func (d pgDriver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return pgListener{d.Driver.GetListener(params)}
}

type pgExecutor struct{ riverdriver.Executor }

func (e pgExecutor) QueueCreateOrSetUpdatedAt(
	ctx context.Context, params *riverdriver.QueueCreateOrSetUpdatedAtParams,
) (*rivertype.Queue, error) {
	queue, err := e.Executor.QueueCreateOrSetUpdatedAt(ctx, params)
	return queue, retold(err)
}

type pgListener struct{ riverdriver.Listener }

func (l pgListener) Connect(ctx context.Context) error { return retold(l.Listener.Connect(ctx)) }

func (l pgListener) Listen(ctx context.Context, topic string) error {
	return retold(l.Listener.Listen(ctx, topic))
}

// retold returns an error with another end.
func retold(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (the connection of the job queue)", err)
}
